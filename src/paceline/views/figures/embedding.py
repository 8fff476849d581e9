"""Where the model sees the tasks of a family: those near each other behave alike."""

from typing import Any

from paceline.views.data import StudyView
from paceline.views.figures.labels import label
from paceline.views.figures.style import LIGHT, Figure, framed, graph_objects
from paceline.views.places import NewPlace, new_place, places


def embedding(view: StudyView) -> Figure | None:
    """Tasks on the first one or two principal axes, and a new one with two deviations about it."""
    found, new = places(view), new_place(view)
    if not found:
        return None
    flat = len(found[0].at) == 1
    figure = graph_objects().Figure(_new(new, flat) if new is not None else [])
    figure.add_trace(
        graph_objects().Scatter(
            x=[place.at[0] for place in found],
            y=[0.0 if flat else place.at[1] for place in found],
            text=[label(place.task) for place in found],
            mode="markers+text",
            textposition=["top center" if i % 2 == 0 else "bottom center" for i in range(len(found))],
            marker={"size": 11, "color": LIGHT.best},
            name="tasks",
            hovertemplate="%{text}: %{x:.3g}" + "<extra></extra>"
            if flat
            else "%{text}: %{x:.3g}, %{y:.3g}<extra></extra>",
            cliponaxis=False,
        )
    )
    framed(figure, "Tasks, as alike as they are near", height=300 if flat else 480)
    figure.update_xaxes(
        title_text="first axis", zeroline=True, zerolinecolor=LIGHT.grid, **_room([p.at[0] for p in found], new, 0)
    )
    figure.update_yaxes(title_text="" if flat else "second axis")
    if flat:
        figure.update_yaxes(visible=False, range=[-1, 1])
    else:
        figure.update_yaxes(scaleanchor="x", scaleratio=1, **_room([p.at[1] for p in found], new, 1))
    return figure


def _room(at: list[float], new: NewPlace | None, axis: int) -> dict[str, Any]:
    """A range with room for names, and at least as wide as the prior's deviation is."""
    seen = [*at, *(point[axis] for point in (new.outline if new is not None else ()))]
    middle, reach = (min(seen) + max(seen)) / 2, max(max(seen) - min(seen), 0.5)
    return {"range": [middle - 0.65 * reach, middle + 0.65 * reach]}


def _new(new: NewPlace, flat: bool) -> list[Any]:
    """Places the new task may have, by weight; its mean, and two deviations."""
    go = graph_objects()

    def second(points: Any) -> list[float]:
        return [0.0 if flat else point[1] for point in points]

    top = max(new.weights, default=1.0) or 1.0
    sizes = [3 + 9 * (weight / top) ** 0.5 for weight in new.weights]
    ring = {"color": LIGHT.ended, "width": 1.6, "dash": "dot"}
    likely = {"size": sizes, "color": LIGHT.ended, "opacity": 0.45, "line": {"width": 0}}
    return [
        go.Scatter(
            x=[p[0] for p in new.outline],
            y=second(new.outline),
            mode="lines",
            line=ring,
            name="two deviations",
            hoverinfo="skip",
        ),
        go.Scatter(
            x=[p[0] for p in new.points],
            y=second(new.points),
            mode="markers",
            marker=likely,
            name="where it may lie",
            customdata=list(new.weights),
            hovertemplate="probability %{customdata:.3f}<extra></extra>",
        ),
        go.Scatter(
            x=[new.mean[0]],
            y=second([new.mean]),
            mode="markers",
            name="the new task",
            marker={"size": 12, "color": LIGHT.failed, "symbol": "star"},
            hovertemplate="the new task<extra></extra>",
        ),
    ]
