"""What people look at: figures, tables and pages, made of plain arrays and rows."""
