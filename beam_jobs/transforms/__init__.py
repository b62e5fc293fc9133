"""Beam steps, thin: what they do is a plain function elsewhere."""
