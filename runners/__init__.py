"""Where jobs run: one TOML profile per kind of runner."""
