"""What stands before the colon in `[[prefix:title]]`: files, categories, languages, sister projects.

A dump names its own namespaces in `<siteinfo>`, but neither their aliases nor, in a fragment, anything.
Hence the names of the larger languages stand here, and hold in every wiki: a page that was translated
keeps the prefixes of the wiki it came from.
"""

from __future__ import annotations

from collections.abc import Mapping

FILE_NAMESPACE = 6
CATEGORY_NAMESPACE = 14

_FILE = """
file image fichier image datei bild archivo imagen ficheiro arquivo imagem immagine bestand afbeelding
plik grafika fil bilde fájl kép soubor obrázek súbor obrázok tiedosto kuva файл изображение зображення
выява датотека слика датотека датотека датотека slika datoteka sličica fișier fişier imagine dosya resim
berkas gambar tập_tin hình hình_ảnh tệp_tin 파일 그림 ファイル 画像 文件 檔案 图像 圖像 档案 檔
图片 圖片 ملف صورة پرونده تصویر קובץ תמונה εικόνα αρχείο dosiero fitxer imatge fitxategi irudi failas
vaizdas fails attēls fail pilt mynd pildi skrá mynd चित्र ফাইল চিত্র படிமம் దస్త్రం ബൗതികം പ്രമാണം चित्र ไฟล์
ภาพ պատկեր ფაილი სურათი şəkil fayl сурет сүрөт lêer beeld delwedd íomhá comhad restr imagine imago
fasciculus skeudenn larawan talaksan wêne mynd ficheru imaxe bilo szablon_pliku зураг ਤਸਵੀਰ ფაილი چترا
فائل تصوير пӓрам rasm tasvir rasim fayl faili picha
"""
_CATEGORY = """
category catégorie kategorie categoría categoria categorie kategoria kategori kategorija kategorija
kategória kategorie luokka категория категорія катэгорыя категорија kategória categorie catégorie
kategorio kategoriya kategooria kategorija kategoreja kategoria flokkur thể_loại 분류
カテゴリ 分类 分類 تصنيف رده קטגוריה κατηγορία श्रेणी বিষয়শ্রেণী பகுப்பு వర్గం വർഗ്ഗം ವರ್ಗ หมวดหมู่ կատեգորիա
კატეგორია санат категори catagóir categorî rummad catigurìa roinn kategorie kaarangay kategoriyê bólkur
kategorii turkum töркем төркем ulamm kategorio categorìa जाति वर्ग زمرہ د_ٻ ٻولي ٽٻ jamii kateggoriija
catigoria kategoriija zawlre رده
"""
_MEDIA_LABELLED = frozenset(("media", "special"))

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


_ALWAYS_HIDDEN = _names(_FILE) | _names(_CATEGORY) | _names(_LANGUAGES)
_PROJECT_NAMES = _names(_PROJECTS)


class LinkPrefixes:
    """Tells what a link prefix means, on a wiki whose namespaces have these local names."""

    def __init__(self, namespaces: Mapping[int, str] | None = None):
        local = namespaces or {}
        own = (local.get(FILE_NAMESPACE), local.get(CATEGORY_NAMESPACE))
        self._hidden = _ALWAYS_HIDDEN | {name.casefold() for name in own if name}

    def hides(self, prefix: str) -> bool:
        """Whether links with this prefix show nothing: files, categories, other languages."""
        return " ".join(prefix.replace("_", " ").split()).casefold() in self._hidden

    def is_project(self, prefix: str) -> bool:
        return prefix.casefold() in _PROJECT_NAMES


DEFAULT_PREFIXES = LinkPrefixes()
