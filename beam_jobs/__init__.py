"""The jobs: split, embed, index, retrieve, generate. Each is options, a pipeline and `run(argv)`."""
