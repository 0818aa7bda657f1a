"""Statements of chapter 5."""
