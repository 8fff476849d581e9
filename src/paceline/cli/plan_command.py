"""`paceline plan`: a schedule for the next run of a model, from logs of earlier runs."""

from pathlib import Path
from typing import Annotated

import typer

from paceline.cli.application import app, print_json, report_errors
from paceline.cli.lr_option import CommandWithLr
from paceline.cli.options import JsonOption, ModeName, PlanFamily


@app.command(cls=CommandWithLr)
def plan(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="SOURCE", help="Runs of one model: studies, CSV files, TensorBoard logs."),
    ],
    steps: Annotated[
        int | None, typer.Option(help="Length of the run to plan, in updates.", show_default="as the longest run")
    ] = None,
    lr: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LOW HIGH",
            help="Bounds of the learning rate.",
            show_default="up to the highest rate that worked",
        ),
    ] = None,
    family: Annotated[
        PlanFamily,
        typer.Option(help="shape: warm-up, hold and decay; multipliers: of a base, on intervals; free: rates on them."),
    ] = PlanFamily.shape,
    quantile: Annotated[float, typer.Option(help="Quantile to maximise; below 0.5 is more careful.")] = 0.5,
    step_column: Annotated[str | None, typer.Option(help="Column of the step.", show_default="by its name")] = None,
    lr_column: Annotated[
        str | None,
        typer.Option(help="Column or tag of the rate; or the rate, if it was not logged.", show_default="by its name"),
    ] = None,
    value_column: Annotated[
        str | None, typer.Option(help="Column or tag of the value.", show_default="a loss, by its name")
    ] = None,
    mode: Annotated[
        ModeName, typer.Option(help="Whether small or large values are good; a study knows.")
    ] = ModeName.min,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the schedule to, as JSON.")] = Path(
        "schedule.json"
    ),
    figure: Annotated[
        Path | None,
        typer.Option(help="File to draw a figure to: .html; .png, .svg and .pdf need Chrome.", show_default="none"),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Plan the next run of a model from logs of earlier runs: a schedule, and a forecast of its outcome."""
    with report_errors():
        if figure is not None:
            from paceline.views import check_figure_path

            check_figure_path(figure)

        from paceline.planning import plan_from

        view = plan_from(
            sources,
            steps=steps,
            lr=lr,
            family=family.value,
            quantile=quantile,
            step=step_column,
            rate=lr_column,
            value=value_column,
            mode=mode.value,
        )
        for path in filter(None, (out, figure)):
            path.parent.mkdir(parents=True, exist_ok=True)
        view.schedule.save(out)
        if figure is not None:
            from paceline.views import plan_figure, write_figure

            write_figure(plan_figure(view), figure)
        if json:
            from paceline.views import plan_json

            print_json({"out": str(out), **plan_json(view)})
            return
        from paceline.views import describe_plan, make_console

        console = make_console()
        console.print(describe_plan(view), soft_wrap=not console.is_terminal)
        console.print(f"\nschedule: {out}", soft_wrap=True)
        if figure is not None:
            console.print(f"figure: {figure}", soft_wrap=True)
        load = f"lambda_lr(optimizer, paceline.Schedule.load({str(out)!r}))"
        console.print(f"to use it: from paceline.integrations import lambda_lr; {load}", soft_wrap=True)
