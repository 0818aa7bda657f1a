"""Chapter 5: gradient descent under the proved envelope, with the certificate's margins."""

import numpy as np

from .explorer import Axis, Explorer, Frame, Row
from .grid import Control, number

HEAD = ("hypothesis", "measured", "needed", "margin")


def certified_loss(start, certify, descend, limit_step, *, sizes, scales, taus=(0.25, 0.5, 1.0), steps=60, every=3):
    """Explorer of Phi_k / Phi_0 and its envelope, over the size of the targets, the branch scale and tau.

    start: (size, scale) -> (transformer, parameters, X, Y). certify: these four and tau -> a certificate. descend: as
    ``descent.descend``. limit_step: tau -> step rule, used where the certificate is refused and has no step.
    """

    k = np.arange(0, steps + 1, every)

    def frame(size, scale, tau):
        parts = start(size, scale)
        certificate = certify(*parts, tau=tau)
        holds = certificate.holds
        nothing = np.full(len(k), np.nan)
        run = descend(
            *parts, steps=steps, step=certificate.step if holds else limit_step(tau), trace_every=every,
            spectra=False, on_divergence="mark",
        )  # fmt: skip
        measured = float(run.loss[-1] / run.loss[0]) ** (1 / steps)
        return Frame(
            {
                "gradient descent": run.loss / run.loss[0],
                "proved envelope": certificate.envelope(k) / certificate.loss if holds else nothing,
            },
            {
                "certificate": "holds" if holds else "refused",
                "step μ": number(float(run.step)) + ("" if holds else " (not certified)"),
                "factor per step proved": number(certificate.rate),
                "factor measured": number(measured) if run.diverged < 0 else "diverges",
            },
            tuple(margins(certificate)),
        )

    return Explorer(
        "Gradient descent under its proved envelope",
        (
            Control("size of the targets ‖R₀‖", tuple(sizes), len(sizes) // 3),
            Control("scale of the branches", tuple(scales), 0),
            Control("fraction τ of the step", tuple(taus), len(taus) - 1),
        ),
        frame,
        x=k,
        x_axis=Axis("iteration k", low=0),
        y_axis=Axis("loss Φₖ / Φ₀", log=True, low=1e-12, high=10.0),
        marks={"proved envelope": "dashed"},
        table=("Hypotheses of the theorem with their margins", HEAD),
        anywhere=True,
    )


def margins(certificate):
    """A row for each hypothesis: what was measured, what was needed, the margin."""
    for h in certificate.hypotheses:
        margin = number(h.margin) + ("" if h.holds else " fails")
        yield Row(h.name, (number(h.measured), f"{h.sense} {number(h.needed)}", margin), h.holds)
