"""What a page knows of itself: `{{PAGENAME}}` and its kind."""

from __future__ import annotations

from collections.abc import Mapping

# Names in the languages of the large wikis, from MediaWiki's message files.
_PAGE_NAME = """
PAGENAME SEITENNAME NOMPAGE NOMBREDEPAGINA NOMBREDEPÁGINA TITOLOPAGINA NOMEDAPAGINA NOMEDAPÁGINA PAGINANAAM
NAZWASTRONY SIDNAMN SIDENAVN SIDENAMN НАЗВАНИЕ_СТРАНИЦЫ НАЗВА_СТОРІНКИ СТРАНИЦА ページ名 页名 页面名 页面名称
頁面名稱 문서이름 NÁZEVSTRANY NÁZOVSTRÁNKY SAYFAADI SIVUNIMI OLDALNEVE LEHEKÜLJENIMI NUMEPAGINA TÊNTRANG
TÊN_TRANG NAMAHALAMAN NAMALAMAN NOMPÀGINA ΟΝΟΜΑΣΕΛΙΔΑΣ اسم_الصفحة نام_صفحه नाम_पृष्ठ पृष्ठ_नाम
ORRIALDEIZEN PAĜNOMO NOMEDAPÁXINA IMESTRANICE ИМЕСТРАНИЦЕ
"""
_FULL_NAME = """
FULLPAGENAME SUBJECTPAGENAME ARTICLEPAGENAME VOLLER_SEITENNAME NOMPAGECOMPLET NOMBREDEPAGINACOMPLETA
NOMBREDEPÁGINACOMPLETA NOMECOMPLETODAPAGINA NOMECOMPLETODAPÁGINA VOLLEDIGEPAGINANAAM PELNANAZWASTRONY
HELASIDNAMNET FULLTSIDENAVN FULLTSIDENAMN ПОЛНОЕ_НАЗВАНИЕ_СТРАНИЦЫ ПОВНА_НАЗВА_СТОРІНКИ 完全なページ名
フルページ名 页面全称 전체문서이름 PLNÝNÁZEVSTRANY TAMSAYFAADI KOKOSIVUNIMI
"""


def page_variables(title: str, namespace: int = 0) -> Mapping[str, str]:
    """The variables that stand for a page's name, by their names; none of them where no title is known.

    Articles have no subpages: a slash in their titles is a slash.
    """
    if not title:
        return {}
    name = title.partition(":")[2].strip() or title if namespace else title
    base, slash, sub = name.rpartition("/") if namespace else ("", "", name)
    values = {
        "BASEPAGENAME": base if slash else name,
        "SUBPAGENAME": sub,
        "ROOTPAGENAME": name.partition("/")[0] if namespace else name,
        "TALKPAGENAME": f"Talk:{title}" if not namespace else "",
        "NAMESPACENUMBER": str(namespace),
    }
    values |= dict.fromkeys(_PAGE_NAME.split(), name) | dict.fromkeys(_FULL_NAME.split(), title)
    for key in ("PAGENAME", "FULLPAGENAME", "BASEPAGENAME", "SUBPAGENAME", "ROOTPAGENAME"):
        values[key + "E"] = values[key].replace(" ", "_")
    return values
