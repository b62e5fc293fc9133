"""Speed of RAG decoding, against `transformers`' RAG `generate` on the same weights and contexts.

    python -m benchmarks.decode [--size base|small] [--threads N] [--cases NAME…] [--no-info]

BART-base's size with random weights (fixed seed), scaled so that distributions are peaked: with the
default scale all tokens are nearly equal and any two programs agree by luck or differ by rounding.
Vocabulary 50,265, passages of 160 tokens, fp32, exactly T target tokens (EOS is held back).

Prints one JSON line per pair (`ratio` > 1: ours is faster; the rows with `info` are not claims):
seconds a question of both, whether the answers are the same ids, the number of distinct candidates,
and, as multiples of encoding the passages once, our time, theirs, and the arithmetic floor without
pruning. The default run takes about six minutes on two quiet cores.
"""

from __future__ import annotations

import argparse
import copy
import json
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from transformers import BartConfig, DPRConfig, RagConfig, RagSequenceForGeneration, RagTokenForGeneration
from transformers.utils import logging as transformers_logging

from rag_core import DecodingConfig, RagModel
from rag_core.decoding import nodes
from rag_core.errors import UsageError
from rag_core.models.compute import lower_precision
from rag_core.models.generator import Generator
from rag_core.models.target_layout import TargetLayout

PASSAGE_TOKENS = 160
SIZES = {"base": (768, 6, 12, 50265), "small": (128, 2, 4, 5000)}
LAYOUT = TargetLayout(start=2, bos=None, eos=2, pad=1)


@dataclass(frozen=True)
class Case:
    name: str
    kind: str
    n_docs: int
    num_beams: int
    target_tokens: int
    must: float
    aim: float


CASES = [
    Case("thorough_k10_beam4_t5", "sequence", 10, 4, 5, 8.0, 12.0),
    Case("thorough_k10_beam4_t10", "sequence", 10, 4, 10, 6.0, 12.0),
    Case("thorough_k50_greedy_t5", "sequence", 50, 1, 5, 8.0, 12.0),
    Case("rag_token_k10_beam4_t5", "token", 10, 4, 5, 2.5, 3.5),
    Case("rag_token_k10_beam4_t10", "token", 10, 4, 10, 2.5, 3.5),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--cases", nargs="+", choices=[c.name for c in CASES], default=[c.name for c in CASES]
    )
    parser.add_argument("--repeats", type=int, default=2, help="runs of ours; the fastest counts")
    parser.add_argument("--no-info", action="store_true", help="only the compared pairs")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    transformers_logging.set_verbosity_error()
    peers = make_peers(args.size)
    for case in CASES:
        if case.name in args.cases:
            for row in rows_of(case, peers[case.kind], args):
                print(json.dumps({"threads": args.threads, "size": args.size, **row}), flush=True)


def make_peers(size: str) -> dict[str, torch.nn.Module]:
    """`transformers`' two RAG models around one generator."""
    width, layers, heads, vocabulary = SIZES[size]
    torch.manual_seed(0)
    bart = BartConfig(
        vocab_size=vocabulary, d_model=width, encoder_layers=layers, decoder_layers=layers,
        encoder_attention_heads=heads, decoder_attention_heads=heads,
        encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width, forced_eos_token_id=None,
        init_std=1.5 * width**-0.5, dropout=0.0,
    )  # fmt: skip
    dpr = DPRConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    config = RagConfig.from_question_encoder_generator_configs(dpr, bart, n_docs=10)
    sequence = RagSequenceForGeneration(config).eval()
    # Output logits that a trained model might have: a few tokens share nearly all probability.
    with torch.no_grad():
        sequence.rag.generator.model.decoder.layers[-1].final_layer_norm.weight.mul_(0.35)
    parts = {"question_encoder": sequence.rag.question_encoder, "generator": sequence.rag.generator}
    return {"sequence": sequence, "token": RagTokenForGeneration(config=config, **parts).eval()}


def make_batch(case: Case, vocabulary: int, seed: int) -> tuple[torch.Tensor, ...]:
    g = torch.Generator().manual_seed(seed)
    ids_KS = torch.randint(5, vocabulary, (case.n_docs, PASSAGE_TOKENS), generator=g)
    scores_1K = torch.randn((1, case.n_docs), generator=g)
    return ids_KS[None], torch.ones_like(ids_KS)[None], scores_1K


def rows_of(case: Case, peer: torch.nn.Module, args: argparse.Namespace) -> Iterator[dict]:
    generator = peer.rag.generator
    vocabulary = generator.config.vocab_size
    model = RagModel(Generator(generator, LAYOUT), kind=case.kind, n_docs=case.n_docs).eval()
    batch = make_batch(case, vocabulary, seed=1)
    config = DecodingConfig(
        num_beams=case.num_beams, max_length=case.target_tokens + 1, min_length=case.target_tokens + 1
    )
    with torch.inference_mode():
        encode = min(timed(lambda: model.encode(*batch))[0] for _ in range(args.repeats + 1))
        ours, split, found = run_ours(model, batch, config, args.repeats)
        theirs, expected = timed(lambda: run_theirs(case, peer, batch))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    floor = floor_multiple(case, generator.config, split["candidates"])
    yield {
        "case": case.name,
        "peer_name": f"transformers Rag{case.kind.title()}ForGeneration.generate",
        "dtype": "float32",
        "ours": round(ours, 3),
        "peer": round(theirs, 3),
        "unit": "s/question",
        "ratio": round(theirs / ours, 2),
        "must": case.must,
        "aim": case.aim,
        "same_output": found[0].token_ids == expected,
        "check": "equal token ids of the best answer",
        "encode_once_s": round(encode, 3),
        "ours_x_encode": round(ours / encode, 2),
        "peer_x_encode": round(theirs / encode, 2),
        "floor_x_encode": round(floor, 2),
        "ours_over_floor": round(ours / encode / floor, 2),
        "distinct_candidates": split["candidates"],
        "nodes_made": split["nodes"],
        "peak_memory_mb": round(memory),
    }
    if not args.no_info:
        yield {"case": f"{case.name}_split", "info": True, "unit": "s", **split}
        yield from dtype_rows(case, model, batch, config, found[0].token_ids, ours)


def timed(work) -> tuple[float, object]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def run_ours(model, batch, config, repeats: int) -> tuple[float, dict, list]:
    """Fastest time of a question, where it went, and its answers."""
    best, split, found = float("inf"), {}, []
    for _ in range(repeats):
        with Meter(model) as meter:
            seconds, (found,) = timed(lambda: model.decode(*batch, config))
        if seconds < best:
            best, split = seconds, meter.split(seconds)
    return best, split, found


class Meter:
    """Counts and times the parts of one decoding by wrapping the functions that do them."""

    def __init__(self, model: RagModel):
        self.model, self.seconds, self.nodes, self.candidates = model, {}, 0, 0

    def __enter__(self) -> Meter:
        from rag_core.decoding import rag_sequence

        generator, meter = self.model.generator, self
        self._saved = (
            generator.encode,
            generator.project,
            nodes.NodeDecoder.expand,
            rag_sequence.score_candidates,
        )
        encode, project, expand, score = self._saved

        def timing(name, function):
            def run(*args, **kwargs):
                seconds, out = timed(lambda: function(*args, **kwargs))
                meter.seconds[name] = meter.seconds.get(name, 0.0) + seconds
                return out

            return run

        def counting_expand(decoder, tokens, parents, depth, valid=None):
            meter.nodes += tokens.numel() if valid is None else int(valid.sum())
            return timing("steps", expand)(decoder, tokens, parents, depth, valid)

        def counting_score(decoder, questions, *args):
            meter.candidates = sum(len(q.rows) for q in questions)
            return timing("rescoring", score)(decoder, questions, *args)

        generator.encode = timing("encoder", encode)
        generator.project = timing("projection", project)
        nodes.NodeDecoder.expand = counting_expand
        rag_sequence.score_candidates = counting_score
        return self

    def __exit__(self, *_: object) -> None:
        from rag_core.decoding import rag_sequence

        del self.model.generator.encode, self.model.generator.project
        nodes.NodeDecoder.expand, rag_sequence.score_candidates = self._saved[2:]

    def split(self, total: float) -> dict:
        s = self.seconds
        decoder = s.get("steps", 0.0) - s.get("projection", 0.0)
        return {
            "encoder": round(s.get("encoder", 0.0), 3),
            "decoder": round(decoder, 3),
            "vocabulary_projection": round(s.get("projection", 0.0), 3),
            "of_it_rescoring": round(s.get("rescoring", 0.0), 3),
            "rest": round(total - s.get("encoder", 0.0) - s.get("steps", 0.0), 3),
            "candidates": self.candidates,
            "nodes": self.nodes,
        }


def run_theirs(case: Case, peer: torch.nn.Module, batch: tuple[torch.Tensor, ...]) -> list[int]:
    ids_1KS, mask_1KS, scores_1K = batch
    peer.config.n_docs = case.n_docs  # their rescoring reads it from there, whatever `generate` is told
    row = peer.generate(
        context_input_ids=ids_1KS[0],
        context_attention_mask=mask_1KS[0],
        doc_scores=scores_1K,
        n_docs=case.n_docs,
        num_beams=case.num_beams,
        max_length=case.target_tokens + 1,
        min_length=case.target_tokens + 1,
        **({} if case.kind == "sequence" else {
            "decoder_start_token_id": 2, "eos_token_id": 2, "pad_token_id": 1,
        }),
    )  # fmt: skip
    return row[0].tolist()


def floor_multiple(case: Case, config: BartConfig, candidates: int) -> float:
    """Multiplications needed without pruning, as a multiple of encoding the passages once.

    Weights and attention of the encoder; cross-attention keys and values once; one decoder position
    per beam and step (one at the first); for thorough decoding the tokens of every candidate under
    every passage that did not make it, prefixes not shared.
    """
    D, F, V, S, T = (
        config.d_model,
        config.decoder_ffn_dim,
        config.vocab_size,
        PASSAGE_TOKENS,
        case.target_tokens,
    )
    layers = config.decoder_layers
    encode = S * config.encoder_layers * (4 * D * D + 2 * D * F + 2 * S * D)
    cross = S * layers * 2 * D * D
    position = layers * (6 * D * D + 2 * D * F + 2 * S * D) + D * V
    steps = 1 + (T - 1) * case.num_beams
    rescored = max(candidates - case.num_beams, 0) * (T - 1) if case.kind == "sequence" else 0
    return (encode + cross + (steps + rescored) * position) / encode


def dtype_rows(case: Case, model: RagModel, batch, config, answer: list[int], fp32: float) -> Iterator[dict]:
    """Ours in bfloat16, and with an int8 encoder: informative, with whether the answer stays the same."""
    for compute in ("bf16", "int8"):
        cheap = Generator(copy.deepcopy(model.generator.model), LAYOUT)
        try:
            lower_precision(cheap, compute)
        except UsageError as error:
            yield {"case": f"{case.name}_{compute}", "info": True, "skipped": str(error)}
            continue
        with torch.inference_mode():
            cheap_model = RagModel(cheap, kind=case.kind, n_docs=case.n_docs).eval()
            seconds, (found,) = timed(partial(cheap_model.decode, *batch, config))
        yield {
            "case": f"{case.name}_{compute}",
            "peer_name": "ours in float32",
            "dtype": compute,
            "ours": round(seconds, 3),
            "peer": round(fp32, 3),
            "unit": "s/question",
            "ratio": round(fp32 / seconds, 2),
            "same_output": found[0].token_ids == answer,
            "check": "equal token ids of the best answer",
            "info": True,
        }


if __name__ == "__main__":
    main()
