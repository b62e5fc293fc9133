"""Contexts: the question is never cut, and the compatible mode equals `transformers`' retriever."""

from types import SimpleNamespace

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast
from transformers.models.rag.retrieval_rag import RagRetriever

from rag_core.models.context import ContextBuilder, ContextFormat, build_contexts, pad_rows
from rag_core.models.target_layout import TargetLayout
from rag_core.models.tokenizer import TextTokenizer
from rag_core.schemas import Passage

TEXTS = [
    "The Seine flows through Paris // and Rouen",
    "Émile Zola / writer",
    '"Quoted" title',
    "who wrote it?",
]


@pytest.fixture(scope="module")
def backend():
    """A byte-level BPE as BART's, trained on a few lines."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(TEXTS * 3, trainer)
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=False)
    return made


@pytest.fixture
def tokenizer(backend):
    return TextTokenizer(tokenizers.Tokenizer.from_str(backend.to_str()))


PASSAGES = [Passage("1", "Seine", "The Seine flows through Paris."), Passage("2", "Émile Zola", "A  writer.")]


def test_a_context_is_title_text_and_question_and_equals_the_joined_text(tokenizer):
    rows = build_contexts(PASSAGES, "Who wrote “Nana”?", tokenizer)
    joined = "Seine / The Seine flows through Paris. // Who wrote “Nana”?"
    assert tokenizer.decode(rows[0]) == joined
    assert rows[0] == tokenizer.backend.encode(joined).ids
    assert rows[0][0] == 0 and rows[0][-1] == 2


def test_the_passage_is_cut_and_never_the_question(tokenizer):
    question = "who wrote Nana and where did the river flow?"
    builder = ContextBuilder(tokenizer, ContextFormat(max_length=60))
    long = Passage("3", "T", "word " * 500)
    (row,) = builder.build([long], question)
    assert len(row) == 60
    assert tokenizer.decode(row).endswith(" // " + question)
    assert (builder.n_truncated, builder.n_truncated_questions) == (1, 0)
    (row,) = builder.build([long], question * 20)
    assert len(row) == 60 and builder.n_truncated_questions == 1
    assert len(builder.closed_book("x " * 400)) == 60
    (empty,) = builder.build([PASSAGES[0]], "")
    assert tokenizer.decode(empty).endswith("//")


def test_the_cache_changes_nothing_and_stays_small(tokenizer):
    small, large = ContextBuilder(tokenizer, cache=1), ContextBuilder(tokenizer)
    for _ in range(2):
        for passage in PASSAGES:
            assert small.build([passage], "q?") == large.build([passage], "q?")
    assert len(small._cache) == 1 and len(large._cache) == 2
    other = Passage("1", "Seine", "Another text under the same id.")
    assert large.build([other], "q?") != large.build([PASSAGES[0]], "q?")


@pytest.mark.parametrize("question", ["who wrote it?", "where  does it flow", "x " * 100])
def test_compat_equals_the_retriever_of_transformers(tokenizer, backend, question):
    theirs = PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(backend.to_str()),
        pad_token="<pad>", bos_token="<s>", eos_token="</s>",
    )  # fmt: skip
    config = SimpleNamespace(title_sep=" / ", doc_sep=" // ", max_combined_length=80)
    retriever = SimpleNamespace(config=config, generator_tokenizer=theirs)
    passages = [*PASSAGES, Passage("3", '"Quoted"', "Paris " * 60)]
    docs = [{"title": [p.title for p in passages], "text": [p.text for p in passages]}]
    ids, mask = RagRetriever.postprocess_docs(retriever, docs, [question], None, 3, return_tensors="pt")
    rows = build_contexts(passages, question, tokenizer, ContextFormat(max_length=80, compat="huggingface"))
    ours_ids, ours_mask = pad_rows([*rows, [0] * 80], 1)  # theirs is always padded to max_length
    assert ours_ids[:3].tolist() == ids.tolist()
    assert ours_mask[:3].tolist() == mask.tolist()


def test_formats_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="compat 'fairseq'"):
        ContextFormat(compat="fairseq")
    with pytest.raises(ValueError, match="max_length 0"):
        ContextFormat(max_length=0)


@pytest.mark.parametrize("bos", [None, 0])
def test_a_layout_goes_there_and_back(tokenizer, bos):
    layout = TargetLayout(start=2, bos=bos, eos=2, pad=1)
    (ids,) = tokenizer.encode(["Émile Zola"])
    row = layout.row(ids)
    assert layout.text_ids([*row, 1, 1]) == ids
    assert tokenizer.decode(layout.text_ids(row)) == "Émile Zola"
    assert len(row) == len(ids) + len(layout.prefix) + 1
    assert layout.row(ids[:1], label=True) == [2, ids[0]]
    assert layout.batch([row, [2, 5, 2]])[1].tolist() == [2, 5, 2] + [1] * (len(row) - 3)


def test_a_layout_is_read_from_raw_configs():
    bart = {"decoder_start_token_id": 2, "eos_token_id": 2, "pad_token_id": 1, "forced_bos_token_id": 0}
    assert TargetLayout.from_config(bart, {}) == TargetLayout(2, 0, 2, 1)
    # An empty generation config does not hide what config.json says; a filled one wins.
    assert TargetLayout.from_config(bart, {"forced_bos_token_id": 7}).bos == 7
    t5 = {"model_type": "t5", "eos_token_id": 1, "pad_token_id": 0}
    assert TargetLayout.from_config(t5, {}) == TargetLayout(0, None, 1, 0)
    with pytest.raises(ValueError, match="names no eos, start token"):
        TargetLayout.from_config({"pad_token_id": 1}, {})
