"""Evaluation: metrics, scoring whole runs, comparing them, and the miniature world."""
