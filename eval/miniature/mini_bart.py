"""mini-bart: a plain BART of about three million parameters and its byte-level BPE.

Only the start differs from `transformers`' BART: matrices of standard deviation 1/sqrt(width), and
learned positions that begin as sinusoids of amplitude 0.07. With the default (0.02, random
positions) copying from a passage does not appear within thousands of steps; with this start it
appears within hundreds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import tokenizers
import torch
from tokenizers import Regex, decoders, models, pre_tokenizers, processors, trainers
from torch import nn
from transformers import BartConfig, BartForConditionalGeneration

from rag_core.models.generator import Generator
from rag_core.models.target_layout import TargetLayout
from rag_core.models.tokenizer import TextTokenizer

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
BOS, PAD, EOS, UNK, MASK = range(5)
POSITION_AMPLITUDE = 0.07
# A space belongs to the word behind it; every digit is a token, so that years can be copied and
# compared by decade. In the byte alphabet "Ġ" is the space.
_PIECES = r"Ġ?[A-Za-z]+|Ġ?[0-9]|Ġ?[^ĠA-Za-z0-9]+|Ġ+"


@dataclass(frozen=True, slots=True)
class Size:
    width: int = 192
    encoder_layers: int = 3
    decoder_layers: int = 2
    heads: int = 4
    feed_forward: int = 768
    vocabulary: int = 2000
    positions: int = 512


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> TextTokenizer:
    """Byte-level BPE; every text starts as if behind a space, so that a name is one thing anywhere."""
    backend = tokenizers.Tokenizer(models.BPE(unk_token=None))
    backend.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False),
        pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
    ])  # fmt: skip
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", BOS), ("</s>", EOS)]
    )
    return TextTokenizer(backend)


def new_generator(tokenizer: TextTokenizer, size: Size, seed: int) -> Generator:
    """A fresh mini-bart for a tokenizer, started as above from `seed`."""
    config = BartConfig(
        vocab_size=tokenizer.backend.get_vocab_size(),
        d_model=size.width,
        encoder_layers=size.encoder_layers,
        decoder_layers=size.decoder_layers,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        encoder_ffn_dim=size.feed_forward,
        decoder_ffn_dim=size.feed_forward,
        max_position_embeddings=size.positions,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        init_std=size.width**-0.5,
        bos_token_id=BOS,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_bos_token_id=None,
        forced_eos_token_id=None,
    )
    torch.manual_seed(seed)
    model = BartForConditionalGeneration(config)
    start_weights(model)
    layout = TargetLayout(start=BOS, bos=None, eos=EOS, pad=PAD)
    return Generator(model, layout, tokenizer)


def start_weights(model: BartForConditionalGeneration) -> None:
    """Draw every matrix with std 1/sqrt(width), set positions to small sinusoids, the rest plain."""
    std = model.config.d_model**-0.5
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.weight.normal_(0.0, std)
                if module.bias is not None:
                    module.bias.zero_()
        for stack in (model.get_encoder(), model.get_decoder()):
            table = stack.embed_positions.weight
            table.copy_(torch.from_numpy(sinusoids(*table.shape)))
        shared = model.get_input_embeddings().weight
        shared.normal_(0.0, std)
        shared[PAD].zero_()
    model.tie_weights()


def sinusoids(positions: int, width: int) -> np.ndarray:
    """Sines and cosines [positions, width] of amplitude `POSITION_AMPLITUDE` (Vaswani et al., 3.5)."""
    angles = np.arange(positions)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    table = np.empty((positions, width), dtype=np.float32)
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table * POSITION_AMPLITUDE
