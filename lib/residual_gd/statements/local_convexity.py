"""Statements of chapter 4."""
