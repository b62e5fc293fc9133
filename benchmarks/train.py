"""Speed of a training step, against `transformers`' RAG forward and backward on the same texts.

    python -m benchmarks.train [--size base|small] [--threads N] [--repeats 3]

Two pairs, both RAG-Token, K = 5, BART's size with random weights, fp32, dropout 0, gradients into the
generator and the document scores; the same loss is checked:

    padded_as_theirs  the same texts: theirs padded to 300 tokens, as its retriever does; ours as ours does
    equal_tensors     the same tensors, padded to their longest row, for both

Prints one JSON line per pair (`ratio` > 1: ours is faster). About two minutes on two quiet cores.
"""

from __future__ import annotations

import argparse
import json
import time

import torch
from transformers import BartConfig, DPRConfig, RagConfig, RagTokenForGeneration
from transformers.utils import logging as transformers_logging

from rag_core import RagModel
from rag_core.models.generator import Generator
from rag_core.models.target_layout import TargetLayout

SIZES = {"base": (768, 6, 12, 50265), "small": (128, 2, 4, 5000)}
LAYOUT = TargetLayout(start=2, bos=None, eos=2, pad=1)
QUESTIONS, K, PADDED, TARGET_TOKENS = 2, 5, 300, 8
SHORTEST, LONGEST = 60, 180  # tokens of a context: a passage of up to 100 words, and the question


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=3, help="runs of each; the fastest counts")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    transformers_logging.set_verbosity_error()
    peer = make_peer(args.size)
    model = RagModel(Generator(peer.rag.generator, LAYOUT), kind="token", n_docs=K).train()
    batch = make_batch(peer.config.generator.vocab_size)
    for case, must, aim in (("padded_as_theirs", 2.2, 4.0), ("equal_tensors", 1.1, 1.5)):
        theirs_in = batch if case == "padded_as_theirs" else trim(batch)
        pairs = [measure(model, peer, batch, theirs_in) for _ in range(args.repeats)]
        ours = min(p[0] for p in pairs)
        theirs = min(p[1] for p in pairs)
        row = {
            "case": case,
            "peer_name": "transformers RagTokenForGeneration forward+backward",
            "dtype": "float32",
            "ours": round(ours, 3),
            "peer": round(theirs, 3),
            "unit": "s/step",
            "ratio": round(theirs / ours, 2),
            "must": must,
            "aim": aim,
            "same_output": all(abs(p[2] - p[3]) < 1e-3 * abs(p[3]) for p in pairs),
            "check": "equal loss within 0.1%",
            "loss": round(pairs[0][2], 4),
            "threads": args.threads,
            "size": args.size,
        }
        print(json.dumps(row), flush=True)


def make_peer(size: str) -> torch.nn.Module:
    width, layers, heads, vocabulary = SIZES[size]
    torch.manual_seed(0)
    bart = BartConfig(
        vocab_size=vocabulary, d_model=width, encoder_layers=layers, decoder_layers=layers,
        encoder_attention_heads=heads, decoder_attention_heads=heads,
        encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width, dropout=0.0,
    )  # fmt: skip
    dpr = DPRConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    config = RagConfig.from_question_encoder_generator_configs(dpr, bart, n_docs=K)
    return RagTokenForGeneration(config).train()


def make_batch(vocabulary: int) -> tuple[torch.Tensor, ...]:
    """Contexts of uneven lengths padded to 300, scores that want a gradient, and labels."""
    g = torch.Generator().manual_seed(0)
    ids = torch.randint(5, vocabulary, (QUESTIONS, K, PADDED), generator=g)
    lengths = torch.randint(SHORTEST, LONGEST + 1, (QUESTIONS, K, 1), generator=g)
    mask = (torch.arange(PADDED) < lengths).long()
    labels = torch.randint(5, vocabulary, (QUESTIONS, TARGET_TOKENS + 2), generator=g)
    labels[:, 0] = labels[:, -1] = 2
    scores = torch.randn((QUESTIONS, K), generator=g).requires_grad_(True)
    return torch.where(mask.bool(), ids, 1), mask, scores, labels


def trim(batch: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    ids, mask, scores, labels = batch
    width = int(mask.sum(dim=2).max())
    return ids[:, :, :width].contiguous(), mask[:, :, :width].contiguous(), scores, labels


def measure(model, peer, batch, theirs_in) -> tuple[float, float, float, float]:
    """Seconds of ours and theirs, and both losses. Ours always gets the padded tensors."""
    ours, our_loss = timed_step(model, lambda: model.nll(*batch).mean())
    ids, mask, scores, labels = theirs_in
    flat = {"context_input_ids": ids.flatten(0, 1), "context_attention_mask": mask.flatten(0, 1)}
    theirs, their_loss = timed_step(
        peer, lambda: peer(**flat, doc_scores=scores, labels=labels, n_docs=K).loss.mean()
    )
    return ours, theirs, our_loss, their_loss


def timed_step(module, forward) -> tuple[float, float]:
    module.zero_grad(set_to_none=True)
    started = time.perf_counter()
    loss = forward()
    loss.backward()
    return time.perf_counter() - started, float(loss.detach())


if __name__ == "__main__":
    main()
