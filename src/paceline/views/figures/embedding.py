"""The tasks of a family in the model's embedding: tasks near each other behave alike."""

from collections.abc import Sequence
from typing import Any

from paceline.views.data import StudyView
from paceline.views.figures.labels import label
from paceline.views.figures.style import LIGHT, Figure, graph_objects, set_layout
from paceline.views.task_map import NewTaskPosterior, new_task_posterior, task_locations

MIN_WIDTH = 0.5  # of an axis, in units of the embedding
NAME_MARGIN = 0.15  # of that width on each side, for names


def embedding(view: StudyView) -> Figure | None:
    """Tasks on the first one or two principal axes, and the posterior of a new task with two deviations around it."""
    tasks, new_task = task_locations(view), new_task_posterior(view)
    if not tasks:
        return None
    one_axis = len(tasks[0].location) == 1
    figure = graph_objects().Figure(_new_task_traces(new_task, one_axis) if new_task is not None else [])
    figure.add_trace(
        graph_objects().Scatter(
            x=[task.location[0] for task in tasks],
            y=_second_axis([task.location for task in tasks], one_axis),
            text=[label(task.task) for task in tasks],
            mode="markers+text",
            textposition=["top center" if i % 2 == 0 else "bottom center" for i in range(len(tasks))],
            marker={"size": 11, "color": LIGHT.best},
            name="tasks",
            hovertemplate=f"%{{text}}: %{{x:.3g}}{'' if one_axis else ', %{y:.3g}'}<extra></extra>",
            cliponaxis=False,
        )
    )
    set_layout(figure, "Tasks: the closer, the more alike", height=300 if one_axis else 480)
    locations = [task.location for task in tasks] + [*(new_task.outline if new_task is not None else ())]
    first_range = _axis_range([location[0] for location in locations])
    figure.update_xaxes(title_text="first axis", zeroline=True, zerolinecolor=LIGHT.grid, range=first_range)
    if one_axis:
        figure.update_yaxes(title_text="", visible=False, range=[-1, 1])
    else:
        second_range = _axis_range([location[1] for location in locations])
        figure.update_yaxes(title_text="second axis", scaleanchor="x", scaleratio=1, range=second_range)
    return figure


def _axis_range(coordinates: Sequence[float]) -> list[float]:
    """A range with room for the names of tasks."""
    middle = (min(coordinates) + max(coordinates)) / 2
    reach = (0.5 + NAME_MARGIN) * max(max(coordinates) - min(coordinates), MIN_WIDTH)
    return [middle - reach, middle + reach]


def _second_axis(locations: Sequence[tuple[float, ...]], one_axis: bool) -> list[float]:
    return [0.0 if one_axis else location[1] for location in locations]


def _new_task_traces(new_task: NewTaskPosterior, one_axis: bool) -> list[Any]:
    """Locations that the new task may have, larger where they are more probable; its mean; and two deviations."""
    scatter = graph_objects().Scatter
    top = max(new_task.weights, default=1.0) or 1.0
    return [
        scatter(
            x=[location[0] for location in new_task.outline],
            y=_second_axis(new_task.outline, one_axis),
            mode="lines",
            line={"color": LIGHT.ended, "width": 1.6, "dash": "dot"},
            name="two deviations",
            hoverinfo="skip",
        ),
        scatter(
            x=[location[0] for location in new_task.locations],
            y=_second_axis(new_task.locations, one_axis),
            mode="markers",
            marker={
                "size": [3 + 9 * (weight / top) ** 0.5 for weight in new_task.weights],
                "color": LIGHT.ended,
                "opacity": 0.45,
                "line": {"width": 0},
            },
            name="its posterior",
            customdata=list(new_task.weights),
            hovertemplate="probability %{customdata:.3f}<extra></extra>",
        ),
        scatter(
            x=[new_task.mean[0]],
            y=_second_axis([new_task.mean], one_axis),
            mode="markers",
            name="the new task",
            marker={"size": 12, "color": LIGHT.failed, "symbol": "star"},
            hovertemplate="the new task<extra></extra>",
        ),
    ]
