"""The course kit: `make release` writes the students' version of the problem sets, `make grade` grades them."""
