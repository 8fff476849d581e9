"""What it looks like: a study as plain data first, then as text, lines, files and pictures. No torch."""
