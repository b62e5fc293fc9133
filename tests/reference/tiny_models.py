"""Tiny random generators whose distributions are peaked: near-uniform ones hide mistakes."""

import json

import torch
from transformers import BartConfig, BartForConditionalGeneration, T5Config, T5ForConditionalGeneration

from rag_core.models.generator import Generator
from rag_core.models.rag_model import RagModel
from rag_core.models.target_layout import TargetLayout


def tiny_bart(vocab_size: int = 5, d_model: int = 16, layers: int = 2, seed: int = 0, std: float = 0.6):
    torch.manual_seed(seed)
    config = BartConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=2 * d_model,
        decoder_ffn_dim=2 * d_model,
        max_position_embeddings=64,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
        dropout=0.0,
        init_std=std,
    )
    model = BartForConditionalGeneration(config).eval()
    model.final_logits_bias.copy_(torch.randn(1, vocab_size))
    return model


def tiny_t5(vocab_size: int = 9, d_model: int = 16, seed: int = 0, factor: float = 3.0, gated: bool = False):
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=vocab_size,
        d_model=d_model,
        d_kv=8,
        num_heads=2,
        d_ff=32,
        num_layers=2,
        feed_forward_proj="gated-gelu" if gated else "relu",
        dropout_rate=0.0,
        initializer_factor=factor,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
    )
    return T5ForConditionalGeneration(config).eval()


def generator_of(model) -> Generator:
    raw = json.loads(model.config.to_json_string(use_diff=False))
    start = 0 if model.config.model_type == "t5" else 2
    layout = TargetLayout(start=start, bos=None, eos=raw["eos_token_id"], pad=raw["pad_token_id"])
    return Generator(model, layout).eval()


def tiny_rag(kind: str = "sequence", **options) -> RagModel:
    return RagModel(generator_of(tiny_bart(**options)), kind=kind, n_docs=3).eval()


def random_batch(B: int, K: int, S: int = 7, vocab_size: int = 5, seed: int = 0, spread: float = 3.0):
    """input_ids_BKS, attention_mask_BKS (uneven lengths, padded on the right) and doc_scores_BK."""
    g = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, vocab_size, (B, K, S), generator=g) if vocab_size > 3 else None
    lengths = torch.randint(2, S + 1, (B, K, 1), generator=g)
    mask = (torch.arange(S) < lengths).long()
    ids = torch.where(mask.bool(), ids, 1)
    return ids, mask, spread * torch.randn((B, K), generator=g)
