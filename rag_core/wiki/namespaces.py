"""What stands before the colon in `[[prefix:title]]`: files, categories, languages, sister projects.

Names of namespaces hold on the wiki of their language; English ones everywhere; what `<siteinfo>` says,
besides. A page that was translated keeps prefixes of the wiki it came from: those count where they cannot
be read otherwise, so that `[[Imagine: John Lennon]]` stays the link to an article that it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from rag_core.wiki.namespace_names import LOCAL_NAMES

FILE_NAMESPACE = 6
CATEGORY_NAMESPACE = 14

_ENGLISH_FILE = frozenset(("file", "image"))
_ENGLISH_CATEGORY = frozenset(("category",))

# Wikipedia's language codes, as in old interlanguage links at the foot of a page.
_LANGUAGES = """
aa ab ace ady af ak als alt am ami an ang anp ar arc ary arz as ast atj av avk awa ay az azb ba ban bar
bat-smg bbc bcl bdr be be-tarask be-x-old bew bg bh bho bi bjn blk bm bn bo bpy br bs btm bug bxr ca
cbk-zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy da dag de dga din diq dsb dtp dty dv dz
ee el eml en eo es et eu ext fa fat ff fi fiu-vro fj fo fon fr frp frr fur fy ga gag gan gcr gd gl glk
gn gom gor got gpe gsw gu guc gur guw gv ha hak haw he hi hif ho hr hsb ht hu hy hyw hz ia iba id ie ig
igl ii ik ilo inh io is it iu ja jam jbo jv ka kaa kab kaj kbd kbp kcg kg kge ki kj kk kl km kn knc ko
koi kr krc ks ksh ku kus kv kw ky la lad lb lbe lez lfn lg li lij lld lmo ln lo lrc lt ltg lv lzh mad
mai map-bms mdf mg mh mhr mi min mk ml mn mni mnw mo mr mrj ms mt mus mwl my myv mzn na nah nan nap nds
nds-nl ne new ng nia nl nn no nb nov nqo nr nrm nso nup nv ny oc olo om or os pa pag pam pap pcd pcm pdc
pdt pfl pi pih pl pms pnb pnt ps pt pwn qu rm rmy rn ro roa-rup roa-tara rsk ru rue rup rw sa sah sat sc
scn sco sd se sg sgs sh shi shn si simple sk skr sl sm smn sn so sq sr srn ss st stq su sv sw szl szy ta
tay tcy tdd te tet tg th ti tig tk tl tly tn to tok tpi tr trv ts tt tum tw ty tyv udm ug uk ur uz ve
vec vep vi vls vo vro wa war wo wuu xal xh xmf yi yo yue za zea zgh zh zh-classical zh-cn zh-hans
zh-hant zh-min-nan zh-tw zh-yue zu
"""
# Sister projects: their links show their label, and here not their prefix.
_PROJECTS = """
wikt wiktionary wikinews n wikibooks b wikiquote q wikisource s wikispecies species wikiversity v
wikivoyage voy commons c meta m mw mediawikiwiki d wikidata w wikipedia foundation wmf incubator phab
phabricator bugzilla doi rfc isbn oclc google imdbname imdbtitle arxiv hdl
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(name.replace("_", " ").replace("\u00a0", " ").casefold() for name in text.split())


_LANGUAGE_CODES = _names(_LANGUAGES)
_PROJECT_NAMES = _names(_PROJECTS)
_ANY_FILE = frozenset().union(*(files for files, _ in LOCAL_NAMES.values()))
_ANY_CATEGORY = frozenset().union(*(categories for _, categories in LOCAL_NAMES.values()))
_MEDIA = re.compile(
    r"\.(?:jpe?g|png|gif|svg|tiff?|webp|xcf|bmp|ico|pdf|djvu|og[gva]|oga|opus|flac|midi?|wav|mp3|webm|mpe?g|mp4|stl)\s*$",
    re.IGNORECASE,
)
_CATEGORY_LIKE = re.compile(r"[ck]at[eéií][gq]")


class LinkPrefixes:
    """Tells what a link prefix means, on wikis of these languages whose namespaces have these names."""

    def __init__(self, *langs: str, namespaces: Mapping[int, str] | None = None):
        local = namespaces or {}
        files, categories = set(_ENGLISH_FILE), set(_ENGLISH_CATEGORY)
        for lang in langs:
            own = LOCAL_NAMES.get(lang) or LOCAL_NAMES.get(lang.partition("-")[0], ((), ()))
            files.update(own[0])
            categories.update(own[1])
        for names, key in ((files, FILE_NAMESPACE), (categories, CATEGORY_NAMESPACE)):
            if key in local:
                names.add(local[key].replace("_", " ").casefold())
        self._files, self._hidden = frozenset(files), frozenset(categories) | _LANGUAGE_CODES
        self._known = self._files | self._hidden | _ANY_FILE | _ANY_CATEGORY

    def is_file(self, prefix: str, title: str) -> bool:
        """Whether `[[prefix:title]]` shows a file."""
        name = _folded(prefix)
        return name in self._files or (name in _ANY_FILE and _MEDIA.search(title) is not None)

    def hides(self, prefix: str, title: str) -> bool:
        """Whether `[[prefix:title]]` shows no text: files, categories, other languages."""
        name = _folded(prefix)
        if name not in self._known:
            return False
        if name in self._hidden or self.is_file(prefix, title):
            return True
        return name in _ANY_CATEGORY and (not name.isascii() or _CATEGORY_LIKE.match(name) is not None)

    def is_project(self, prefix: str) -> bool:
        return prefix.casefold() in _PROJECT_NAMES


def _folded(prefix: str) -> str:
    return " ".join(prefix.replace("_", " ").split()).casefold()


@cache
def prefixes_of(lang: str) -> LinkPrefixes:
    """The prefixes of the Wikipedia of a language, as far as they can be known without a dump."""
    return LinkPrefixes(lang)
