"""The drawing of the network says what the network is."""

import matplotlib.pyplot as plt

from residual_gd.figures.network import network


def texts(fig):
    return [text.get_text() for text in fig.axes[0].texts]


def test_every_matrix_with_its_shape_and_both_skips():
    fig = network(P=5, n=3, d=2, c=7)
    written = texts(fig)
    plt.close(fig)
    for matrix in ("$X$", "$Z$", "$H$", "$F$"):
        assert matrix in written
    assert written.count("5 × 3 × 2") == 3
    assert written.count("5 × 3 × 7") == 1
    assert {r"times $\beta_A$", r"times $\beta_F$"} <= set(written)


def test_letters_where_no_numbers_are_given():
    fig = network()
    written = texts(fig)
    plt.close(fig)
    assert "P × n × d" in written
    assert "P × n × c" in written
