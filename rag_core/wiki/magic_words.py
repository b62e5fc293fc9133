"""The behaviour switches of MediaWiki, `__NOTOC__` and its kind, by language code.

English ones hold in every wiki. The others come from MediaWiki 1.39's message files (`magicWords`).
Whatever else stands between double underscores is text: `__init__`, `__FILE__`.
"""

from __future__ import annotations

# The first nine are read in any case.
_ENGLISH = """
NOTOC FORCETOC TOC NOEDITSECTION NOGALLERY NOCONTENTCONVERT NOCC NOTITLECONVERT NOTC INDEX NOINDEX
HIDDENCAT NEWSECTIONLINK NONEWSECTIONLINK STATICREDIRECT EXPECTUNUSEDCATEGORY EXPECTUNUSEDTEMPLATE
NOGLOBAL ARCHIVEDTALK NOTALK EXPECTED_UNCONNECTED_PAGE EXPECTWITHOUTSCANS
"""
# Marks of a disambiguation page, which every wiki takes in several languages.
DISAMBIGUATION_SWITCHES = frozenset(
    """
    DISAMBIG BEGRIFFSKLÄRUNG BEGRIFFSKLAERUNG HOMONYMIE DESAMBIG DESAMBIGUACIÓN DESAMBIGUACION DISAMBIGUA
    DESAMBIGUAÇÃO DOORVERWIJSPAGINA UJEDNOZNACZNIENIE ACLARACIÓN НЕОДНОЗНАЧНОСТЬ НЕОДНОЗНАЧНІСТЬ ROZCESTNÍK
    ANLAMAYRIMI 曖昧さ回避 消歧义 消歧義 동음이의
    """.split()
)
_LOCAL = """
ar: توقع_تصنيف_غير_مستخدم لصق_فهرس تصنيف_مخفي فهرسة وصلة_قسم_جديد لاتحويل_محتوى لاتم لاتحريرقسم لامعرض
  لافهرسة لا_وصلة_قسم_جديد لاتحويل_عنوان لاتع لافهرس تحويلة_إستاتيكية تحويلة_ساكنة فهرس
arz: اتوقع_تصنيف_مش_مستخدم لصق_فهرس تصنيف_مخفي فهرسة وصلة_قسم_جديد من_غير_تحويل_محتوى لاتم لاتحويل_محتوى
  من_غير_تحريرقسم لاتحريرقسم من_غير_معرض لامعرض لافهرسة من_غير_وصلة_قسم_جديد لا_وصلة_قسم_جديد
  من_غيرتحويل_عنوان لاتع لاتحويل_عنوان من_غير_فهرس لافهرس تحويله_إستاتيكيه تحويله_ساكنه تحويلة_إستاتيكية
  تحويلة_ساكنة فهرس
az: QALEREYAYOX MÜNDƏRİCATYOX
be-tarask: ЗЬМЕСТ_ПРЫМУСАМ СХАВАЦЬ_КАТЭГОРЫЮ СПАСЫЛКА_НА_НОВУЮ_СЭКЦЫЮ НЕ_КАНВЭРТАВАЦЬ_ТЭКСТ
  БЕЗ_РЭДАГАВАНЬНЯ_СЭКЦЫІ БЕЗ_ГАЛЕРЭІ НЕ_КАНВЭРТАВАЦЬ_НАЗВУ БЯЗЬ_ЗЬМЕСТУ СТАТЫЧНАЕ_ПЕРАНАКІРАВАНЬНЕ ЗЬМЕСТ
bg: СЪССЪДЪРЖАНИЕ СКРИТАКАТЕГОРИЯ ИНДЕКСИРАНЕ ВРЪЗКА_ЗА_НОВ_РАЗДЕЛ БЕЗ_РЕДАКТИРАНЕ_НА_РАЗДЕЛИ БЕЗГАЛЕРИЯ
  БЕЗИНДЕКСИРАНЕ БЕЗСЪДЪРЖАНИЕ СЪДЪРЖАНИЕ
bn: লুকানো_বিষয়শ্রেণী লুকানোবিষয়শ্রেণী লুকায়িতবিষয়শ্রেণী লুক্কায়িতবিষয়শ্রেণী লুক্কায়িত_বিষয়শ্রেণী
  নির্ঘণ্ট নতুন_অনুচ্ছেদের_সংযোগ নতুন_অনুচ্ছেদের_লিঙ্ক নতুনঅনুচ্ছেদেরসংযোগ নতুনঅনুচ্ছেদেরলিঙ্ক
  কোন_বিষয়বস্তু_রূপান্তরকারী_নয় কোনবিষয়বস্তুরূপান্তরকারীনয় কোনসম্পাদনাঅনুচ্ছেদনয়
  কোন_সম্পাদনা_অনুচ্ছেদ_নয় কোনগ্যালারিনয় কোনগ্যালারীনয় কোন_গ্যালারি_নয় কোন_গ্যালারী_নয় কোননির্ঘণ্টনয়
  কোন_নির্ঘণ্ট_নয় নির্ঘণ্টনয় কোন_নতুন_অনুচ্ছেদের_সংযোগ_নয় কোন_নতুন_অনুচ্ছেদের_লিঙ্ক_নয়
  কোননতুনঅনুচ্ছেদেরসংযোগনয় কোননতুনঅনুচ্ছেদেরলিঙ্কনয় কোন_শিরোনাম_রূপান্তরকারী_নয় কোনশিরোনামরূপান্তরকারীনয়
  কোন_বিষয়বস্তুর_ছক_নয় কোনবিষয়বস্তুরছকনয় কোন_বিষয়বস্তুর_টেবিল_নয় কোনবিষয়বস্তুরটেবিলনয়
  স্থির_পুনর্নির্দেশ স্থিরপুনর্নির্দেশ বিষয়বস্তুর_ছক বিষয়বস্তুরছক বিষয়বস্তুর_টেবিল বিষয়বস্তুরটেবিল
ca: FORÇATAULA CATAMAGADA SECCIÓNOEDITABLE SECCIONOEDITABLE CAPGALERIA NOGALERIA CAPINDEX CAPTAULA NOTAULA
  REDIRECCIÓESTATICA REDIRECCIOESTATICA TAULA RESUM TDM
cs: VŽDYOBSAH SKRÝTKAT INDEXOVAT LINKPŘIDATKOMENTÁŘ BEZKONVERZEOBSAHU BEZEDITOVATČÁST BEZGALERIE NEINDEXOVAT
  BEZLINKUPŘIDATKOMENTÁŘ BEZKONVERZENADPISU BEZOBSAHU STATICKÉPŘESMĚROVÁNÍ OBSAH
de: INHALTSVERZEICHNIS_ERZWINGEN VERSTECKTE_KATEGORIE WARTUNGSKATEGORIE INDEXIEREN INDIZIEREN
  NEUER_ABSCHNITTSLINK PLUS_LINK KEINE_INHALTSKONVERTIERUNG ABSCHNITTE_NICHT_BEARBEITEN KEINE_GALERIE
  KEINEGALERIE NICHT_INDEXIEREN KEIN_INDEX NICHT_INDIZIEREN KEIN_NEUER_ABSCHNITTSLINK KEIN_PLUS_LINK
  KEINE_TITELKONVERTIERUNG KEIN_INHALTSVERZEICHNIS KEININHALTSVERZEICHNIS PERMANENTE_WEITERLEITUNG
  INHALTSVERZEICHNIS
el: ΜΕΠΠ ΜΕΠΙΝΑΚΑΠΕΡΙΕΧΟΜΕΝΩΝ ΚΡΥΦΗΚΑΤΗΓΟΡΙΑ ΕΥΡΕΤΗΡΙΟ ΔΕΣΜΟΣΝΕΑΣΕΝΟΤΗΤΑΣ ΧΩΡΙΣΜΕΤΑΤΡΟΠΗΠΕΡΙΧΟΜΕΝΟΥ
  ΧΩΡΙΣΕΠΕΞΕΝΟΤ ΧΩΡΙΣΕΠΕΞΕΡΓΑΣΙΑΕΝΟΤΗΤΩΝ ΧΩΡΙΣΠΙΝΑΚΟΘΗΚΗ ΧΩΡΙΣΕΥΡΕΤΗΡΙΟ ΧΩΡΙΣΜΕΤΑΤΡΟΠΗΤΙΤΛΟΥ ΧΩΡΙΣΠΠ
  ΧΩΡΙΣΠΙΝΑΚΑΠΕΡΙΕΧΟΜΕΝΩΝ ΣΤΑΤΙΚΗΑΝΑΚΑΤΕΥΘΥΝΣΗ ΠΠ ΠΙΝΑΚΑΣΠΕΡΙΕΧΟΜΕΝΩΝ
eo: FI FORTUINDEKSON FT KK KAŜITAKATEGORIO KASXITAKATEGORIO INDEKSU INDEKSI LIGILOALNOVASEKCIO NSL LNS LANS
  NEKONVERTUENHAVON NKH NCC SRS NES SENREDAKTISEKCIOJN SENREDAKTISEKCION NG SENBILDARO SB SG SENGALERIO
  NEINDEKSU NIU SENLIGILOALNOVASEKCIO NNSL SLNS SLANS NEKONVERTUTITOLON NKT NTC NI NEINDEKSO NT
  STATIKAALIDIREKTO I T INDEKSO
es: FORZAR_TDC FORZARTDC FORZARTOC CATEGORÍAOCULTA INDEXAR VINCULARANUEVASECCION ENLACECREARSECCIÓN
  NOCONVERTIRCONTENIDO NOCC_ NO_EDITAR_SECCIÓN NOEDITARSECCIÓN NOEDITARSECCION SIN_GALERÍA NOGALERÍA
  NOGALERIA NOINDEXAR NOVINCULARANUEVASECCION SINENLACECREARSECCIÓN NOCONVERTIRTITULO NOCONVERTIRTÍTULO
  NOCT_ SIN_TDC NOTDC REDIRECCIÓNESTÁTICA REDIRECCIONESTATICA TDC
et: SISUKORDEES PEIDETUDKAT INDEKSIGA UUEALAOSALINK ALAOSALINGITA GALERIITA INDEKSITA UUEALAOSALINGITA
  SISUKORRATA SISUKORD
fa: بافهرست رده‌پنهان نمایه بخش‌جدید محتواتبدیل‌نشده بی‌بخش بی‌نگارخانه بی‌نمایه بی‌پیوندبخش
  بی‌پیوند‌بخش‌جدید عنوان‌تبدیل‌نشده بی‌فهرست تغییرمسیرثابت فهرست
fi: SISLUETTPAKOTUS PIILOLUOKKA EIOSIOMUOKKAUSTA HAKUKONEKIELTO EISISLUETT SISÄLLYSLUETTELO
fr: FORCERSOMMAIRE FORCERTDM CATCACHEE LIENNOUVELLESECTION SANSCONVERSIONCONTENU SANSCC SECTIONNONEDITABLE
  AUCUNEGALERIE AUCUNINDEX AUCUNLIENNOUVELLESECTION SANSCONVERSIONTITRE SANSCT AUCUNSOMMAIRE AUCUNETDM
  REDIRECTIONSTATIQUE SOMMAIRE TDM
gl: FORZAROÍNDICE FORCARTDC FORCARSUMARIO FORÇARTDC FORÇARSUMÁRIO CATEGORÍAOCULTA CATEGORIAOCULTA CATOCULTA
  INDEXAR LIGAZÓNDANOVASECCIÓN LINKDENOVASECAO LINKDENOVASEÇÃO LIGACAODENOVASECAO LIGAÇÃODENOVASEÇÃO
  SECCIÓNSNONEDITABLES NÃOEDITARSEÇÃO SEMEDITARSEÇÃO NAOEDITARSECAO SEMEDITARSECAO SENGALERÍA SEMGALERIA
  NONINDEXAR NAOINDEXAR NÃOINDEXAR SENÍNDICE SEMTDC SEMSUMÁRIO REDIRECCIÓNESTÁTICA REDIRECCIONESTATICA
  REDIRECIONAMENTOESTATICO REDIRECIONAMENTOESTÁTICO ÍNDICE TDC SUMÁRIO SUMARIO
he: חייב_תוכן_עניינים חייב_תוכן קטגוריה_מוסתרת לחיפוש יצירת_הערה ללא_המרת_תוכן ללא_עריכה ללא_גלריה לא_לחיפוש
  ללא_יצירת_הערה ללא_המרת_כותרת ללא_תוכן_עניינים ללא_תוכן הפניה_קבועה תוכן_עניינים תוכן
hi: अनुक्रम_दिखाएँ विषय_सूची_दिखाएँ विषय_सूची_दिखायें छुपी_श्रेणी छिपी_श्रेणी सूचीबद्ध विषय_जोड़ें_कड़ी
  अनुभाग_सम्पादन_नहीं गैलरी_नहीं असूचीबद्ध विषय_जोड़े_कड़ी_रहित बिना_अनुक्रम विषय_सूची_हीन स्थिर_पुनर्प्रेषण
  स्थिर_अनुप्रेषण अनुक्रम विषय_सूची
hr: UKLJUČISADRŽAJ SKRIVENAKAT KAZALO NOVIODLOMAKPOVEZNICA BEZPRETVARANJASADRŽAJA BPS BEZUREĐIVANJAODLOMAKA
  BEZGALERIJE BEZKAZALA BEZPRETVARANJANASLOVA BPN BEZSADRŽAJA NEPOMIČNOPREUSMJERAVANJE SADRŽAJ
hu: LEGYENTARTALOMJEGYZÉK LEGYENTJ REJTETTKAT REJTETTKATEGÓRIA ÚJSZAKASZHIV ÚJSZAKASZLINK NINCSSZERKESZTÉS
  NINCSSZERK NINCSGALÉRIA NINCSINDEX NINCSÚJSZAKASZHIV NINCSÚJSZAKASZLINK NINCSTARTALOMJEGYZÉK NINCSTJ
  ÁLLANDÓÁTIRÁNYÍTÁS STATIKUSÁTIRÁNYÍTÁS TARTALOMJEGYZÉK TJ
hy: ՍՏԻՊԵԼ_ԲՈՎ ՀՂՈՒՄ_ՆՈՐ_ԲԱԺՆԻ_ՎՐԱ ԱՌԱՆՑ_ՊԱՐՈՒՆԱԿՈՒԹՅԱՆ_ՓՈՓՈԽՄԱՆ ԱՌԱՆՑ_ԲԱԺՆԻ_ԽՄԲԱԳՐՄԱՆ ԱՌԱՆՑ_ՍՐԱՀԻ
  ԱՌԱՆՑ_ՎԵՐՆԱԳՐԻ_ՓՈՓՈԽՄԱՆ ԱՌԱՆՑ_ԲՈՎ ԲՈՎ
id: PAKSADAFTARISI PAKSADASI KATEGORITERSEMBUNYI KATSEM INDEKS PRANALABAGIANBARU PRABABA TANPAKONVERSIISI
  NIRKOSI TANPASUNTINGANBAGIAN NIRSUBA TANPAGALERI NIRGAL TANPAINDEKS NIRDEKS TANPAPRANALABAGIANBARU
  NIRPRABABA TANPAKONVERSIJUDUL NIRKODUL TANPADAFTARISI NIRDASI PENGALIHANSTATIK PENGALIHANSTATIS PETIK
  PETIS DAFTARISI DASI
it: INDICE NOINDICE
ja: 目次強制 カテゴリ非表示 カテ非表示 非表示カテ 隠しカテゴリ インデックス 新しい節リンク
  新しいセクションリンク 新セクションリンク 内容変換無効 内容変換抑制 節編集非表示 セクション編集非表示
ギャラリー非表示 インデックス拒否 新しい節リンク非表示 新しいセクションリンク非表示
  新セクションリンク非表示 タイトル変換無効 タイトルコンバート拒否 タイトル非表示 目次非表示 静的転送
  二重転送解消無効
  二重転送修正無効 目次
ka: უგალერეო
kk: МАЗМҰНДАТҚЫЗУ МҚЫЗУ ЖАСЫРЫНСАНАТ ЖАҢАБӨЛІМСІЛТЕМЕСІ МАҒЛҰМАТЫНТҮРЛЕНДІРГІЗБЕУ МАТЖОҚ
  МАҒЛҰМАТАЛМАСТЫРҒЫЗБАУ МАБАУ БӨЛІДІМӨНДЕМЕУ БӨЛІМӨНДЕТКІЗБЕУ ҚОЙМАСЫЗ ҚСЫЗ ТАҚЫРЫПАТЫНТҮРЛЕНДІРГІЗБЕУ
  ТАТЖОҚ АТАУАЛМАСТЫРҒЫЗБАУ ААБАУ МАЗМҰНСЫЗ МСЫЗ МАЗМҰНЫ МЗМН
ko: 목차보임 목차표시 숨은분류 색인 새문단쓰기 새글쓰기 내용변환없음 내변없음 내용변환안함 내변안함
  부분편집숨김 문단편집숨김 단락편집숨김 갤러리숨김 화랑숨김 색인안함 색인거부 새문단쓰기숨기기
  새글쓰기숨기기 제목변환없음 제변없음 제목변환안함 제변안함 목차숨김 넘겨주기고정 목차
lt: BEREDAGSEKC BEGALERIJOS BETURIN TURINYS
mk: СОСОДРЖИНА СКРИЕНАКАТ СКРИЕНАКАТЕГОРИЈА ИНДЕКС ВРСКАНОВПОДНАСЛОВ БЕЗПРЕТВОРАЊЕСОДРЖИНА
  БЕЗ_УРЕДУВАЊЕ_НА_ПОДНАСЛОВИ БЕЗГАЛЕРИЈА БЕЗИНДЕКС БЕЗВРСКАНОВПОДНАСЛОВ БЕЗПРЕТВОРАЊЕНАСЛОВ БЕЗСОДРЖИНА
  СТАТИЧНОПРЕНАСОЧУВАЊЕ СОДРЖИНА
nl: INHOUD_DWINGEN FORCEERINHOUD VERBORGENCAT NIEUWESECTIELINK NIEUWESECTIEKOPPELING GEENINHOUDCONVERSIE
  GEENIC NIETBEWERKBARESECTIE GEEN_GALERIJ GEENINDEX GEENNIEUWKOPJEKOPPELING GEENNIEUWESECTIELINK
  GEENNIEUWKOPJEVERWIJZING GEENPAGINANAAMCONVERSIE GEENTITELCONVERSIE GEENTC GEENINHOUD
  STATISCHEDOORVERWIJZING STATISCHEREDIRECT INHOUD
nn: ALLTIDINNHALDSLISTE ALLTIDINNHOLDSLISTE GØYMDKAT LØYNDKAT INGABOLKENDRING INGABOLKREDIGERING
  INGENDELENDRING INKJEGALLERI INGAINNHALDSLISTE INGENINNHOLDSLISTE INNHALDSLISTE INNHOLDSLISTE
no: TVINGINNHOLDSFORTEGNELSE SKJULTKATEGORI INDEKSER NYSEKSJONSLENKE INGENINNHOLDSKONVERTERING
  INGENSEKSJONSREDIGERING INTETGALLERI INGENINDEKSERING INGENNYSEKSJONSLENKE INGENTITTELKONVERTERING
  INGENINNHOLDSFORTEGNELSE STATISTOMDIRIGERING INNHOLDSFORTEGNELSE
pl: ZESPISEM WYMUŚSPIS KATEGORIAUKRYTA INDEKSUJ LINKNOWEJSEKCJI BEZEDYCJISEKCJI BEZGALERII NIEINDEKSUJ
  BEZSPISU POZIOMZABEZPIECZEŃ SPIS
pt: FORCARTDC FORCARSUMARIO FORÇARTDC FORÇARSUMÁRIO CATEGORIAOCULTA CATOCULTA INDEXAR LINKDENOVASECAO
  LINKDENOVASEÇÃO LIGACAODENOVASECAO LIGAÇÃODENOVASEÇÃO SEMCONVERTERCONTEUDO SEMCONVERTERCONTEÚDO SEMCC
  NÃOEDITARSEÇÃO SEMEDITARSEÇÃO NAOEDITARSECAO SEMEDITARSECAO SEMGALERIA NAOINDEXAR NÃOINDEXAR
  SEMLINKDENOVASECAO SEMLINKDENOVASEÇÃO SEMLIGACAODENOVASECAO SEMLIGAÇÃODENOVASEÇÃO SEMCONVERTERTITULO
  SEMCONVERTERTÍTULO SEMCT SEMTDC SEMSUMÁRIO REDIRECIONAMENTOESTATICO REDIRECIONAMENTOESTÁTICO TDC SUMÁRIO
  SUMARIO
ro: FORTEAZACUPRINS ASCUNDECAT LEGATURASECTIUNENOUA FARACONVERTIRECONTINUT FCC FARAEDITSECTIUNE FARAGALERIE
  FARAINDEX FARALEGATURASECTIUNENOUA FARACONVERTIRETITLU FCT FARACUPRINS REDIRECTIONARESTATICA CUPRINS
ru: ОБЯЗАТЕЛЬНОЕ_ОГЛАВЛЕНИЕ ОБЯЗ_ОГЛ СКРЫТАЯ_КАТЕГОРИЯ ИНДЕКС ССЫЛКА_НА_НОВЫЙ_РАЗДЕЛ
  БЕЗ_ПРЕОБРАЗОВАНИЯ_ТЕКСТА БЕЗ_РЕДАКТИРОВАНИЯ_РАЗДЕЛА БЕЗ_ГАЛЕРЕИ БЕЗ_ИНДЕКСА БЕЗ_ССЫЛКИ_НА_НОВЫЙ_РАЗДЕЛ
  БЕЗ_ПРЕОБРАЗОВАНИЯ_ЗАГОЛОВКА БЕЗ_ОГЛАВЛЕНИЯ БЕЗ_ОГЛ СТАТИЧЕСКОЕ_ПЕРЕНАПРАВЛЕНИЕ ОГЛАВЛЕНИЕ ОГЛ
sk: VYNÚTIŤOBSAH SKRYTÁKATEGÓRIA SKRYTÁKAT NEUPRAVOVAŤSEKCIE BEZGALÉRIE BEZOBSAHU OBSAH
sl: VSILIKAZALOVSEBINE SKRITAKATEGORIJA KAZALO BREZUREJANJARAZDELKOV BREZGALERIJE BREZKAZALA
  BREZKAZALAVSEBINE STATICNAPREUSMERITEV POGLAVJE
sq: KATEGORIEFSHEHUR PAREDAKTIMPJESE JOREDAKTIMSEKSIONI PAGALERI JOGALERI PATP JOTP TP
sr: ФОРСИРАНИСАДРЖАЈ ФОРСИРАНИ_САДРЖАЈ ПРИМОРАНИСАДРЖАЈ ПРИМОРАНИ_САДРЖАЈ САКРИВЕНАКАТ ИНДЕКС НОВАВЕЗАОДЕЉКА
  НОВА_ВЕЗА_ОДЕЉКА БЕЗКС БЕЗЦЦ BEZKS БЕЗИЗМЕНА БЕЗ_ИЗМЕНА БЕЗИЗМЈЕНА БЕЗ_ИЗМЈЕНА БЕЗГАЛЕРИЈЕ БЕЗ_ГАЛЕРИЈЕ
  БЕЗИНДЕКСА БЕЗ_ИНДЕКСА БЕЗНОВЕВЕЗЕОДЕЉКА БЕЗ_НОВЕ_ВЕЗЕ_ОДЕЉКА БЕЗКН BEZKN БЕЗСАДРЖАЈА БЕЗ_САДРЖАЈА
  СТАТИЧКОПРЕУСМЕРЕЊЕ САДРЖАЈ FORSIRANISADRŽAJ FORSIRANI_SADRŽAJ PRIMORANISADRŽAJ PRIMORANI_SADRŽAJ
  SAKRIVENAKAT INDEKS NOVAVEZAODELJKA NOVA_VEZA_ODELJKA BEZCC BEZIZMENA BEZ_IZMENA BEZIZMJENA BEZ_IZMJENA
  BEZGALERIJE BEZ_GALERIJE BEZINDEKSA BEZ_INDEKSA BEZNOVEVEZEODELJKA BEZ_NOVE_VEZE_ODELJKA BEZSADRŽAJA
  BEZ_SADRŽAJA STATIČKOPREUSMERENJE SADRŽAJ
sv: ALLTIDINNEHÅLLSFÖRTECKNING DOLDKAT INDEXERA NYTTAVSNITTLÄNK INTEREDIGERASEKTION INGETGALLERI
  INTEINDEXERA INGENINNEHÅLLSFÖRTECKNING STATISKOMDIRIGERING INNEHÅLLSFÖRTECKNING
th: ไม่มีแก้เฉพาะส่วน ไม่มีแกลเลอรี่ ไม่มีสารบัญ
tr: İÇİNDEKİLERZORUNLU GİZLİKAT GİZLİKATEGORİ DİZİN ENDEKS YENİBAŞLIKBAĞLANTISI İÇERİKDÖNÜŞÜMÜYOK İDY
  DEĞİŞTİRYOK DÜZENLEMEYOK GALERİYOK DİZİNYOK ENDEKSYOK YENİBAŞLIKBAĞLANTISIYOK BAŞLIKDÖNÜŞÜMÜYOK BDY
  İÇİNDEKİLERYOK STATİKYÖNLENDİRME SABİTYÖNLENDİRME İÇİNDEKİLER
uk: ОБОВ_ЗМІСТ ОБЯЗАТЕЛЬНОЕ_ОГЛАВЛЕНИЕ ОБЯЗ_ОГЛ ПРИХОВ_КАТ ПРИХОВАНА_КАТЕГОРІЯ СКРЫТАЯ_КАТЕГОРИЯ ІНДЕКС
  ИНДЕКС ПОСИЛАННЯ_НА_НОВИЙ_РОЗДІЛ ССЫЛКА_НА_НОВЫЙ_РАЗДЕЛ БЕЗ_ПЕРЕТВОРЕННЯ_ТЕКСТУ БЕЗ_ПРЕОБРАЗОВАНИЯ_ТЕКСТА
  БЕЗ_РЕДАГУВ_РОЗДІЛУ БЕЗ_РЕДАКТИРОВАНИЯ_РАЗДЕЛА БЕЗ_ГАЛЕРЕЇ БЕЗ_ГАЛЕРЕИ БЕЗ_ІНДЕКСУ БЕЗ_ИНДЕКСА
  БЕЗ_ПОСИЛАННЯ_НА_НОВИЙ_РОЗДІЛ БЕЗ_ССЫЛКИ_НА_НОВЫЙ_РАЗДЕЛ БЕЗ_ПЕРЕТВОРЕННЯ_ЗАГОЛОВКУ
  БЕЗ_ПРЕОБРАЗОВАНИЯ_ЗАГОЛОВКА БЕЗ_ЗМІСТУ БЕЗ_ОГЛАВЛЕНИЯ БЕЗ_ОГЛ СТАТИЧНЕ_ПЕРЕНАПРАВЛЕННЯ
  СТАТИЧЕСКОЕ_ПЕРЕНАПРАВЛЕНИЕ ЗМІСТ ОГЛАВЛЕНИЕ ОГЛ
ur: بافہرست پوشیدہ_زمرہ اشاریہ ربط_نیا_قطعہ منتقلی_مواد_نہیں ناترمیم_قطعہ نگارخانہ_نہیں اشاریہ_نہیں
  ربط_نیا_قطعہ_نہیں منتقلی_عنوان_نہیں فہرست_نہیں نافہرست ساکن_رجوع_مکرر فہرست
uz: ICHIDAGILARMAJBURIY YASHIRINTURKUM INDEKS TAHRIRYOQ TARTIBLASHYOQ GALEREYAYOQ INDEKSYOQ ICHIDAGILARYOQ
  ICHIDAGILARI ICHIDAGILAR
vi: LUÔN_MỤC_LỤC LUÔNMỤCLỤC THỂ_LOẠI_ẨN THỂLOẠIẨN CHỈ_MỤC CHỈMỤC LIÊN_KẾT_MỤC_MỚI LIÊNKẾTMỤCMỚI
  KHÔNG_CHUYỂN_NỘI_DUNG KHÔNGCHUYỂNNỘIDUNG KHÔNG_NÚT_SỬA_MỤC KHÔNGNÚTSỬAMỤC KHÔNG_ALBUM KHÔNGALBUM
  KHÔNG_CHỈ_MỤC KHÔNGCHỈMỤC KHÔNG_LIÊN_KẾT_MỤC_MỚI KHÔNGLIÊNKẾTMỤCMỚI KHÔNG_CHUYỂN_TÊN KHÔNGCHUYỂNTÊN
  KHÔNG_MỤC_LỤC KHÔNGMỤCLỤC ĐỔI_HƯỚNG_NHẤT_ĐỊNH ĐỔIHƯỚNGNHẤTĐỊNH MỤC_LỤC MỤCLỤC
zh: 强显目录 隐藏分类 索引 新段落链接 不转换内容 无编辑段落 无段落编辑 无图库 无索引 无新段落链接
  不转换标题 无目录 静态重定向 目录 強制目錄 隱藏分類 不轉換內容 無段落編輯 無圖庫 不轉換標題
  無目錄 靜態重新導向 目錄
"""


def _read_local() -> dict[str, frozenset[str]]:
    words: dict[str, list[str]] = {}
    lang = ""
    for word in _LOCAL.split():
        if word.endswith(":"):
            lang = word[:-1]
        else:
            words.setdefault(lang, []).append(word)
    return {lang: frozenset(its) for lang, its in words.items()}


_ENGLISH_WORDS = frozenset(_ENGLISH.split()) | DISAMBIGUATION_SWITCHES
_ANY_CASE = frozenset(word.lower() for word in _ENGLISH.split()[:9])
_LOCAL_WORDS = _read_local()


def is_switch(word: str, lang: str) -> bool:
    """Whether `__word__` is a behaviour switch on a wiki of this language."""
    return word in _ENGLISH_WORDS or word.lower() in _ANY_CASE or word in _LOCAL_WORDS.get(lang, ())
