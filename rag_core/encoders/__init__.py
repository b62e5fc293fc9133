"""Question and passage encoders: loading, batch plans, vectors.

`load_encoder(name_or_dir)` gives a `TextEncoder`; names are imported when first used, because they
bring torch and transformers with them.
"""

from typing import TYPE_CHECKING

from rag_core.errors import UnknownModelError
from rag_core.lazy import lazy_names

if TYPE_CHECKING:
    from rag_core.encoders.batch_plan import Batch, plan_batches
    from rag_core.encoders.load import load_encoder
    from rag_core.encoders.text_encoder import EncoderSpec, NonFiniteVectorError, TextEncoder

_HOMES = {
    "Batch": "batch_plan",
    "plan_batches": "batch_plan",
    "load_encoder": "load",
    "EncoderSpec": "text_encoder",
    "NonFiniteVectorError": "text_encoder",
    "TextEncoder": "text_encoder",
}

__all__ = [
    "Batch",
    "EncoderSpec",
    "NonFiniteVectorError",
    "TextEncoder",
    "UnknownModelError",
    "load_encoder",
    "plan_batches",
]

__getattr__ = lazy_names(__name__, _HOMES)
