"""LaTeX files as text: tokens, macros, groups, the displays of a paper."""
