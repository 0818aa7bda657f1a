"""The panel of notation: which rows of the table a formula has, and what is put into a page."""

import re

import book_notation
import pytest

from residual_gd import notation

PAGE = (
    '<html data-content_root="../"><body><div class="article-header-buttons"></div>'
    '<span class="math notranslate nohighlight">\\(H\\)</span>'
    '<article class="bd-article">{}</article></body></html>'
)


def symbols(tex):
    return [book_notation.ROWS[row].symbol for row in book_notation.rows_of(tex)]


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        (r"\sigma_{\min}(H_0)", ["H = A W_2 + beta_F Z", "sigma_min(.), sigma_j(.)"]),
        (r"\sigma = 1", ["sigma"]),
        (r"\sigma_{r+1}", ["sigma_min(.), sigma_j(.)"]),
        (r"\bar Z", ["Z", "bar H, bar Z, ..."]),
        (r"W_1^0 + W_{U}", ["W_1, W_2, W_U"]),
        (r"W_Q = W_K = 0", ["W_Q, W_K, W_V"]),  # the K at the foot is not the kernel
        (r"\|X\|_F", ["X, Y; X_p"]),  # nor is this F the output
        (r"X_p", ["X, Y; X_p"]),
        (r"J_{W_1}", ["W_1, W_2, W_U", "J, J_b; K = J J^T"]),
        (r"J^\top", ["J, J_b; K = J J^T"]),
        (r"f_{1,b} \le h_2", ["h1, f1; h2, f2"]),
        (r"T_1", ["T_l"]),
        (r"T_{m,n}", ["T_{m,n}"]),
        (r"l_\phi", ["phi, l_phi, b_phi"]),
        (r"\beta", ["beta_A, beta_F"]),
        (r"(1 - \mu\delta)^{2n}", ["P, n, N = Pn", "mu, tau", "alpha, omega, delta = alpha - omega"]),
        (r"\begin{aligned} M &= 1 \end{aligned}", ["M"]),
        (r"\operatorname{Ball}(\rho)", ["rho; Ball(rho)"]),
        (r"\hat J_k \in \mathbb R^{q}, \mathcal C, \text{M}", []),
        (r"\lambda_{\max} = x_{i}", []),
    ],
)
def test_symbols_of_a_formula(tex, expected):
    assert symbols(tex) == expected


def test_every_row_is_found_by_its_own_symbols():
    for row, symbol in enumerate(notation.table().symbols):
        for part in re.split(r"[,;]\\ ", symbol.tex.strip("$")):
            if part != r"\dots":
                assert row in book_notation.rows_of(part), part


def test_a_page_gets_its_own_symbols_only():
    text = '<p><span class="math notranslate nohighlight">\\(\\Phi &lt; \\alpha\\)</span></p>'
    page = book_notation.add(PAGE.format(text))
    assert page.count("data-row=") == 2 and page.count('popovertarget="notation-panel"') == 2
    assert re.search(r'data-symbols="\d+ \d+">\\\(\\Phi &lt; \\alpha\\\)', page)
    assert 'href="../chapters/appendix-notation.html"' in page and 'src="../_static/notation.js"' in page
    assert page.index("<aside") < page.index("</body>")


@pytest.mark.parametrize("text", ["No formula.", '<span class="math notranslate nohighlight">\\(1 + 1\\)</span>'])
def test_a_page_without_symbols_stays_as_it_is(text):
    page = PAGE.format(text)
    assert book_notation.add(page) == page
