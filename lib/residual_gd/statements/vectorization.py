"""Statements of chapter 2."""
