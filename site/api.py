"""The page of the library's public names, from their docstrings."""


def api_page() -> str:
    return "# The library\n"
