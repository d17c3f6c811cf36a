module lookalike.example

go 1.19
