"""What the HTML pages are made of: markup that escapes, styles, scripts, and the parts of the report."""
