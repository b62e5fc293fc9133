"""`<math>` in running text: kept where it reads as text, dropped where it is a drawing.

"the angle \\alpha \\le 90^\\circ" is part of its sentence, a fraction of sums is not. So a formula
stays if, with its letters and signs written as characters, no TeX command is left in it and it is
short; otherwise it goes, without a placeholder.
"""

from __future__ import annotations

import re

_MAX_LENGTH = 80

_CHARACTERS = """
alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ
lambda λ mu μ nu ν xi ξ pi π rho ρ sigma σ tau τ upsilon υ phi φ varphi φ chi χ psi ψ omega ω Gamma Γ
Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Phi Φ Psi Ψ Omega Ω hbar ℏ ell ℓ aleph ℵ infty ∞ partial ∂
nabla ∇ emptyset ∅ cdot · times × pm ± mp ∓ div ÷ ast * le ≤ leq ≤ ge ≥ geq ≥ ne ≠ neq ≠ approx ≈ equiv
≡ sim ∼ cong ≅ propto ∝ ll ≪ gg ≫ in ∈ notin ∉ ni ∋ subset ⊂ subseteq ⊆ supset ⊃ cup ∪ cap ∩ setminus ∖
forall ∀ exists ∃ neg ¬ lnot ¬ land ∧ wedge ∧ lor ∨ vee ∨ to → rightarrow → leftarrow ← Rightarrow ⇒
Leftarrow ⇐ leftrightarrow ↔ iff ⇔ Leftrightarrow ⇔ implies ⇒ mapsto ↦ circ ° degree ° ldots … dots …
cdots ⋯ dotsc … dotsb … prime ′ langle ⟨ rangle ⟩ mid | vert | parallel ∥ perp ⊥ angle ∠ oplus ⊕ otimes
⊗ R ℝ N ℕ Z ℤ Q ℚ sum ∑ prod ∏ int ∫ surd √
""".split()
_SIGNS = dict(zip(_CHARACTERS[::2], _CHARACTERS[1::2]))
_WORDS = frozenset(
    "sin cos tan cot sec csc log ln lg exp lim max min sup inf gcd det dim ker mod deg arg".split()
)
_IGNORED = frozenset(
    "left right big Big bigg Bigg bigl bigr displaystyle textstyle scriptstyle limits nolimits "
    "rm bf it cal quad qquad mathrm mathbf mathit mathsf mathcal mathbb mathfrak text textrm "
    "textbf textit mbox operatorname boldsymbol bold".split()
)
_COMMAND = re.compile(r"\\(?:([a-zA-Z]+)|([,;:! ~]|&nbsp;)|([{}%$#_|]))")


def formula_text(tex: str) -> str:
    """A formula as plain characters, or "" when it is more than that can show.

    >>> formula_text(r"\\alpha_{i,j} \\le 90^\\circ")
    'α_i,j ≤ 90°'
    """
    tex = tex.strip()
    if "\\" in tex:
        tex = _COMMAND.sub(_command, tex)
    if "\\" in tex or "&" in tex or "\n" in tex or len(tex) > _MAX_LENGTH:
        return ""
    return " ".join(tex.replace("{", "").replace("}", "").replace("^°", "°").replace("~", " ").split())


def _command(match: re.Match[str]) -> str:
    word, space, sign = match.groups()
    if sign:
        return "" if sign in "{}" else sign
    if space:
        return " "
    if word in _IGNORED:
        return ""
    if word in _WORDS:
        return word + " "
    return _SIGNS.get(word, "\\")  # a backslash that stays: more than letters and signs
