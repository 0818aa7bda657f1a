"""Statements of chapter 9."""
