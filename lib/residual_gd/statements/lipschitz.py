"""Statements of chapter 3."""
