"""The two experiments of the book, on real records: weather (chapter 7) and sentiment (chapter 8)."""
