"""The argument of the book: for each statement, the earlier ones that its proof uses. The map in the introduction
is drawn from this table, and a test holds it against the ledger and the chapters.
"""

from dataclasses import dataclass

CHAPTER_PAGES = {  # key of the ledger -> the chapter's file and what it is about
    "vectorization": ("chapters/02-vectorization", "Jacobian and gradient"),
    "lipschitz": ("chapters/03-lipschitz", "How fast things can change"),
    "local-convexity": ("chapters/04-local-convexity", "How much the gradient must push"),
    "rate": ("chapters/05-rate-theorem", "The rate theorems"),
    "rank": ("chapters/06-residual-rank", "What the residual does to the rank"),
    "beyond": ("chapters/09-beyond-one-layer", "Many layers and heads"),
}


@dataclass(frozen=True)
class Step:
    """A statement on the map: a label in a few words, and the ids of the statements that its proof uses."""

    id: str
    chapter: str
    label: str
    uses: tuple[str, ...] = ()

    @property
    def theorem(self) -> bool:
        return self.id.startswith("thm-")


MAJORANTS = (
    "lem-majorant-product",
    "lem-majorant-attention",
    "lem-majorant-softmax",
    "lem-majorant-activation",
    "lem-majorant-anchoring",
)
RATES = ("thm-rate-descent", "thm-rate-smooth", "thm-rate-lipschitz")


def _chapter(key, *rows):
    return [Step(id, key, label, tuple(uses)) for id, label, uses in rows]


STEPS = (
    *_chapter(
        "vectorization",
        ("lem-vec-kronecker", "vec and Kronecker products", ()),
        ("prop-jacobian-blocks", "The six Jacobian blocks", ("lem-vec-kronecker",)),
        ("prop-gradient", "The gradient", ("prop-jacobian-blocks",)),
        ("prop-critical-points", "Critical points of full rank", ("prop-gradient",)),
        ("prop-obstructions", "What no parameters can fit", ()),
        ("prop-kernel-rank", "When J Jᵀ > 0 is possible", ("prop-obstructions",)),
    ),
    *_chapter(
        "lipschitz",
        ("lem-softmax-jacobian", "First derivative of softmax", ()),
        ("lem-softmax-second-derivative", "Second derivative of softmax", ("lem-softmax-jacobian",)),
        ("lem-elementwise", "Activations, entry by entry", ()),
        ("lem-majorant-product", "Majorant of a product", ()),
        ("lem-majorant-attention", "Majorants inside attention", ("lem-majorant-product",)),
        (
            "lem-majorant-softmax",
            "Majorant of the softmax",
            ("lem-softmax-jacobian", "lem-softmax-second-derivative"),
        ),
        ("lem-majorant-activation", "Majorant of an activation", ("lem-elementwise",)),
        ("lem-majorant-anchoring", "Anchoring at the start", ()),
        ("prop-layer-constants", "The constants of one layer", MAJORANTS),
        ("cor-jacobian-bound", "Bound of the Jacobian", ("prop-layer-constants",)),
        ("cor-feature-drift", "How far the features drift", ("prop-layer-constants",)),
        ("cor-jacobian-lipschitz", "How far the Jacobian drifts", ("prop-layer-constants",)),
        ("cor-hessian-bound", "Bound of the Hessian", ("prop-layer-constants", "cor-jacobian-bound")),
    ),
    *_chapter(
        "local-convexity",
        ("prop-not-strongly-convex", "Not strongly convex", ()),
        ("prop-block-grams", "What each block adds", ("prop-jacobian-blocks",)),
        ("lem-features-lower-bound", "Features from below", ("lem-elementwise",)),
        (
            "prop-pl-on-ball",
            "PL inequality on a ball",
            ("prop-block-grams", "cor-feature-drift"),
        ),
        ("prop-pl-projected", "PL inequality, projected", ("prop-gradient",)),
    ),
    *_chapter(
        "rate",
        ("thm-rate-descent", "Rate theorem, descent form", ("cor-hessian-bound", "prop-pl-on-ball")),
        ("lem-master", "Master lemma", ()),
        (
            "thm-rate-smooth",
            "Rate theorem, smooth form",
            ("lem-master", "cor-jacobian-bound", "prop-layer-constants", "prop-pl-on-ball"),
        ),
        (
            "thm-rate-lipschitz",
            "Rate theorem, Lipschitz form",
            ("lem-master", "cor-feature-drift", "prop-pl-on-ball"),
        ),
        ("thm-rate-kernel", "Rate theorem, kernel form", ("lem-master", "cor-jacobian-lipschitz")),
        (
            "prop-relu-margin",
            "ReLU that never switches",
            ("prop-layer-constants", "thm-rate-descent", "thm-rate-smooth"),
        ),
        ("cor-closed-descent", "Closed form, smooth", ("thm-rate-descent",)),
        ("cor-closed-lipschitz", "Closed form, Lipschitz", ("thm-rate-lipschitz",)),
        ("prop-rate-in-z", "The rate read from Z", ("cor-closed-lipschitz", "lem-features-lower-bound")),
        ("prop-restart", "Certifying the tail of a run", ("thm-rate-descent", "thm-rate-smooth", "thm-rate-kernel")),
        ("prop-head-only", "Training the head alone", ("prop-gradient",)),
        ("prop-certificate-sound", "The certificate is sound", (*RATES, "thm-rate-kernel")),
        (
            "prop-optimal-constants",
            "The rates can't be improved",
            ("thm-rate-smooth", "thm-rate-lipschitz", "prop-head-only"),
        ),
    ),
    *_chapter(
        "rank",
        ("prop-rank-of-product", "Rank of the attention term", ()),
        ("prop-near-uniform", "Near-uniform attention", ()),
        ("prop-low-rank-logits", "Logits of low rank", ()),
        ("prop-generic-full-rank", "No exact collapse, generically", ()),
        ("prop-residual-weyl", "The residual against small attention", ()),
        ("prop-residual-scalar-value", "The residual with positive attention", ()),
        ("prop-residual-generic-beta", "All β but N", ()),
        ("prop-residual-generic-value", "Almost every value matrix", ()),
        ("prop-residual-fails", "Where the residual fails", ()),
        ("prop-loss-floor", "Loss floor without the skip", ("prop-near-uniform",)),
        ("thm-dichotomy", "Dichotomy theorem", ("prop-gradient", "prop-loss-floor", *RATES)),
        ("prop-depth-collapse", "Pure attention collapses in depth", ("lem-softmax-jacobian", "prop-loss-floor")),
        ("prop-depth-residual", "With the residual: geometric at most", ("prop-depth-collapse",)),
    ),
    *_chapter(
        "beyond",
        ("thm-rate-deep", "Rate theorem, many layers", (*MAJORANTS, "prop-pl-on-ball", *RATES, "thm-rate-kernel")),
        ("lem-depth-conditioning", "Depth and conditioning at the start", ("lem-elementwise",)),
    ),
)


def page_links(toc) -> dict[str, str]:
    """Address of every statement and chapter (by its key) whose page the text of a table of contents names."""
    pages = {key: page for key, (page, _) in CHAPTER_PAGES.items() if page in toc}
    links = {key: f"{page}.html" for key, page in pages.items()}
    return links | {step.id: f"{pages[step.chapter]}.html#{step.id}" for step in STEPS if step.chapter in pages}
