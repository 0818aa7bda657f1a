"""Statements of chapter 6."""
