"""What templates show. A renderer per name: the page's language first, then what English and all share.

To teach the cleaner a template, add a row to the table of its language: see `building`.
"""

from rag_core.wiki.templates.arguments import Arguments
from rag_core.wiki.templates.building import Renderer, drop
from rag_core.wiki.templates.lookup import find_function, find_template
from rag_core.wiki.templates.variables import page_variables

__all__ = ["Arguments", "Renderer", "drop", "find_function", "find_template", "page_variables"]
