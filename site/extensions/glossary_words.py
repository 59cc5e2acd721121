"""Words of the glossary, linked where a lesson uses them first."""


def setup(app):
    return {"parallel_read_safe": True, "parallel_write_safe": True}
