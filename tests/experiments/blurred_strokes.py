"""Images of two kinds of blurred strokes, 5 x 5 pixels, in place of MNIST."""

import numpy as np

from experiments._svgp import Images


def blurred_strokes() -> Images:
    """300 images, 100 of them observed."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.uniform(size=300) < 0.5, -1.0, 1.0)
    strokes = np.where(labels[:, None] > 0, np.eye(5).ravel(), np.eye(5)[::-1].ravel())
    return Images.of(np.clip(strokes + 0.3 * rng.standard_normal((300, 25)), 0, 1), labels, observed=100)
