"""A world in miniature: a generated encyclopaedia, its questions, and the generator read on it."""
