"""The local names of the file and category namespaces, with their aliases, by language code.

From MediaWiki 1.39's message files (`namespaceNames`, `namespaceAliases`, with the languages each falls
back to), and a few aliases that single wikis add. English names hold everywhere and are not repeated.
A line: codes / ... : file names ; category names, case-folded, "_" for a space.
"""

from __future__ import annotations

_NAMES = """
ab: афаил файл изображение ; акатегориа категория
ace: beureukaih berkas gambar ; kawan kategori
af: lêer beeld ; kategorie
ak: ; nkyekyem
als/gsw/bar/de/frr/pdt: datei bild ; kategorie
alt/av/koi/krc/kv/ru: файл изображение ; категория
am: ስዕል ; መደብ
ami: faylo 檔案 文件 圖像 圖片 档案 图像 图片 ; kasasiwasiw 分類 分类
an: imachen archivo imagen ; categoría
ang: ymele biliþ ; flocc
anp/bh/bho/dty/hi/ne: चित्र ; श्रेणी
ar/arz: ملف صورة ; تصنيف
arc: ܠܦܦܐ ; ܣܕܪܐ
ary: فيشي ملف صورة ; تصنيف
as: চিত্ৰ चित्र চিত্র ; শ্ৰেণী श्रेणी শ্রেণী
ast: ficheru imaxe imaxen archivu archivo imagen ; categoría
atj: natisinahikaniwoc fichier ; tipanictawin catégorie
avk: iyeltak ewava fichier archivo imagen файл изображение ; loma catégorie categoría категория
awa/mai: फाइल चित्र ; श्रेणी
ay/cbk-zam/es/guc: archivo imagen ; categoría
az: fayl şəkil ; kateqoriya
azb: فایل پرونده تصویر ; بؤلمه رده
ba: файл рәсем изображение ; категория төркөм
ban/bbc/btm/bug/id/min/nia: berkas gambar ; kategori
bat-smg/sgs: abruozdielis vaizdas ; kateguorėjė kategorija
bcl: ladawan ; kategorya
be/be-x-old/be-tarask: файл выява ; катэгорыя
bg: файл картинка ; категория
bjn: barakas berkas gambar ; tumbung kategori
blk: ဖုဲင် ဖိုင် ; ကဏ္ဍ
bm/ff/fr/kbp/ln/nrm/pcd/sg/ty: fichier ; catégorie
bn: চিত্র ফাইল ; বিষয়শ্রেণী
bpy: ছবি চিত্র ; থাক বিষয়শ্রেণী
br: restr skeudenn ; rummad
bs/hr: datoteka slika ; kategorija
bxr: файл изображение ; категори категория
ca: fitxer imatge fichièr fichier ; categoria catégorie
cdo: 文件 tóng-àn 檔案 圖像 圖片 档案 图像 图片 ; 分類 lūi-pia̍t 分类
ce: файл сурт хlум изображение ; категори тоба кадегар категория
ceb: payl imahen ; kategoriya
ch: litratu ; katigoria
ckb: پەڕگە ; پۆل
co/eml/it/roa-tara: immagine ; categoria
crh: fayl ресим resim файл изображение ; kategoriya категория
cs: soubor súbor obrázok obrázek ; kategorie kategória
csb: òbrôzk plik grafika ; kategòrëjô kategoria
cu: дѣло ви́дъ видъ ; катигорїꙗ катигорї
cv: ӳкерчĕк файл изображение ; категори категория
cy: delwedd ; categori
da: fil billede ; kategori
dag: lahabali_kɔligu ; pubu
din: apamduööt ; bekätakthook
diq: dosya ; kategori kategoriye
dsb/hsb: dataja wobraz datei bild ; kategorija kategorie
dtp/ms: fail imej ; kategori
dv: ފައިލު ފައިލް ; ޤިސްމު
el: αρχείο εικόνα ; κατηγορία
eo: dosiero ; kategorio
et: fail pilt ; kategooria
eu: fitxategi irudi ; kategoria
ext: archivu archivo imagen ; categoría categoria
fa: پرونده تصویر ; رده
fat: fael ; nkyekyεmu
fi: tiedosto kuva ; luokka
fiu-vro/vro: pilt fail ; katõgooria kategooria
fo: mynd ; bólkur
fon: wékpo fichier ; akpaxwé catégorie
frp: fichiér émâge fichier ; catègorie catégorie
fur: figure immagine ; categorie categoria
fy: ofbyld ; kategory
ga: íomhá comhad ; catagóir rang
gag: dosye dosya resim ; kategoriya kategori
gan: 文檔 文件 档案 图像 图片 檔案 圖像 圖片 ; 分類 分类
gcr: fiché fichier ; katégori catégorie
gd: faidhle ; roinn-seòrsa
gl: ficheiro imaxe imagem arquivo ; categoría categoria
glk: فاىل پرونده تصویر ; جرگه رده
gn: ta'ãnga archivo imagen ; ñemohenda categoría
gom: फायल चित्र ; वर्ग श्रेणी
gor: berkas gambar ; dalala kategori
got: 𐍆𐌴𐌹𐌻𐌰 ; 𐌷𐌰𐌽𐍃𐌰
gu: ચિત્ર ; શ્રેણી
guw: wepo ; adà
gv: coadan ; ronney
hak/zh-classical/lzh: 檔案 文件 圖像 圖片 档案 图像 图片 ; 分類 分类
haw: waihona kiʻi ; māhele
he: קובץ תמונה ; קטגוריה
hif: ; vibhag
ht: fichye imaj fichier ; kategori catégorie
hu: fájl kép ; kategória
hy: պատկեր ; կատեգորիա
hyw: պատկեր ; ստորոգութիւն կատեգորիա
ia: imagine ; categoria
ie: ; categorie
ig: usòrò ákwúkwó_orünotu ; òtù ébéonọr
ii/wuu/za/zh: 文件 档案 图像 图片 檔案 圖像 圖片 ; 分类 分類
ilo: papeles ; kategoria
inh: файл изображение ; оагӏат категория
io: arkivo imajo dosiero ; kategorio
is: mynd skrá ; flokkur
ja: ファイル 画像 ; カテゴリ
jbo: datnyvei ; klesi
jv/map-bms: barkas gambar berkas ; kategori
ka/xmf: ფაილი სურათი ; კატეგორია
kaa: su'wret swret сурет سۋرەت ; kategoriya sanat санат سانات
kab/zgh: tugna fichier ; taggayt catégorie
kbd: файл ; категориэ категория
kcg: fail ; sa
kg: fisye ; kalasi
kk: сурет swret سۋرەت ; санат sanat سانات
kl: fiileq fil billede ; sumut_atassuseq kategori
km: ឯកសារ រូបភាព ; ចំណាត់ថ្នាក់ក្រុម ចំណាត់ក្រុម ចំនាត់ថ្នាក់ក្រុម
kn: ಚಿತ್ರ ; ವರ್ಗ
ko: 파일 그림 ; 분류
ks: فَیِل ; زٲژ
ksh: datei beld belld bild ; saachjrupp sachjrop saachjrop saachjropp kattejori kategorie katejori
ku: wêne ; kategorî
kw: restren ; klass class
ky: файл ; категория
la: fasciculus imago ; categoria
lad: dosya archivo dossia imagen ; kateggoría categoría katēggoría
lb: fichier bild datei ; kategorie
lbe: сурат файл изображение ; категория
lez: файл изображение fayl şəkil ; категория kateqoriya
lfn: fix ; categoria
li: plaetje aafbeilding bestand afbeelding ; categorie kategorie
lij: immaggine immagine ; categorîa categoria
lld: immagine datoteca figure ; categoria categorie
lmo: archivi immagine figura immaggine imàjine ; categoria categuria categorìa categorîa
lo: ຮູບ ; ໝວດ
lrc: جانیا أسگ پرونده تصویر ; دأسە رده
lt: vaizdas ; kategorija
ltg: fails attēls ; kategoreja kategorija
lv: attēls ; kategorija
mad: bhengkek berkas gambar ; bhângsa kategori
mdf: няйф изображение артовкс файл ; категорие категория
mg: sary fichier ; sokajy catégorie
mhr: файл изображение ; категорий категория категори
mk: податотека слика ; категорија
ml: പ്രമാണം ചി ചിത്രം പ്ര ; വർഗ്ഗം വി വ വിഭാഗം
mn: файл зураг ; ангилал
mni: ꯐꯥꯏꯜ ; ꯃꯆꯥꯈꯥꯏꯕ
mnw: ဝှာင် ဖိုင် ; ကဏ္ဍ
mo/ro/roa-rup/rup: fișier imagine fişier ; categorie
mr: चित्र ; वर्ग
mrj: файл изображение ; категори категорий категория
mt: stampa ; kategorija
mwl: fexeiro ficheiro imagem arquivo ; catadorie categoria
my: ဖိုင် ; ကဏ္ဍ
myv: артовкс няйф изображение файл ; категория категорие
mzn: پرونده تصویر ; رج رده
nah: īxiptli imagen archivo ; neneuhcāyōtl categoría
nap: fiùra immagine ; categurìa categoria
nds-nl: bestaand ofbeelding bestand afbeelding ; kategorie categorie kattegerie
nds: bild datei ; kategorie
new: किपा ; पुचः
nl: bestand afbeelding ; categorie
nn/no/nb: fil bilde bilete ; kategori
nqo: ߞߐߕߐ߮ ; ߦߌߟߡߊ
nso: seswantšho ; setensele
nv: eʼelyaaígíí ; tʼááłáhági_átʼéego
oc: fichièr imatge fitxer fichier ; categoria catégorie
olo: failu tiedosto kuva ; kategourii luokka
or: ଫାଇଲ ; ଶ୍ରେଣୀ ବିଭାଗ
os: файл ныв изображение ; категори категория
pa: ਤਸਵੀਰ ; ਸ਼੍ਰੇਣੀ
pcm: ; katigori
pdc: feil datei bild ; abdeeling kategorie
pfl: dadai datei bild ; sachgrubb kategorie kadegorie
pi: पटिमा ; विभाग
pl: plik grafika ; kategoria
pms: figura immagine ; categorìa categoria
pnb: فائل تصویر ; گٹھ
pnt: αρχείον εικόναν αρχείο εικόνα ; κατηγορίαν κατηγορία
ps: دوتنه انځور ; وېشنيزه
pt: ficheiro imagem arquivo ; categoria
pwn: sineqetj_a_vecik 檔案 文件 圖像 圖片 档案 图像 图片 ; pinapapilipiliqan 分類 分类
qu: rikcha archivo imagen ; katiguriya samiyachiy categoría
rm: datoteca ; categoria
rmy: chitro fișier imagine fişier ; shopni categorie
rn: dosiye ; umuce
rsk: файл датотека slika слика ; катеґория категорија kategorija
rue: файл зображення изображение ; катеґорія категорія категория
rw: dosiye ; ikiciro
sa: सञ्चिका चित्रं चित्रम् चित्र ; वर्गः श्रेणी
sah: билэ ойуу файл изображение ; категория
sat: ᱨᱮᱫ ; ᱛᱷᱚᱠ
sc: immàgini ; categoria
scn: mmàggini immagine ; catigurìa categoria
sd: فائل عڪس ; زمرو
se: fiila fil bilde tiedosto kuva ; kategoriija kategori luokka
sh: datoteka slika слика датотека ; kategorija категорија
shi: afaylu fichier ; taggayt catégorie
shn: ၾၢႆႇ ; ပိူင်ထၢၼ်ႈ
si: ගොනුව රූපය ; ප්‍රවර්ගය
sk: súbor obrázok soubor ; kategória kategorie
skr: فائل تصویر ملف ; ونکی زمرہ گٹھ
sl: slika sličica ; kategorija
smn: tiätuvuárkká tiedosto kuva ; luokka
sq: skeda figura ; kategoria kategori
sr: датотека slika слика datoteka ; категорија kategorija
srn: gefre afbeelding bestand ; guru categorie
stq: bielde datei bild ; kategorie
su: gambar berkas ; kategori
sv: fil bild ; kategori
sw: faili picha ; jamii
szl: plik grafika ; kategoryjo kategoria
szy: tangan 檔案 文件 圖像 圖片 档案 图像 图片 ; kakuniza 分類 分类
ta: படிமம் ; பகுப்பு
tay: biru’_na_zayzyuwaw _na_zayzyuwaw 檔案 文件 圖像 圖片 档案 图像 图片 ; zyuwaw_na 分類 分类
tcy: ಫೈಲ್ ಚಿತ್ರ ; ವರ್ಗೊ ವರ್ಗ
te: దస్త్రం బొమ్మ ఫైలు ; వర్గం
tet: imajen ficheiro imagem arquivo ; kategoria kategoría categoria
tg: акс ; гурӯҳ
th: ไฟล์ ภาพ ; หมวดหมู่
ti: ፋይል ; መደብ
tk: faýl ; kategoriýa
tl: talaksan larawan ; kategorya kaurian
tly: fajl ; tispir
tn: setshwantsho ; karolo
tpi: fail ; grup
tr: dosya resim ; kategori
trv: patas_bntasan 檔案 文件 圖像 圖片 档案 图像 图片 ; snakun 分類 分类
tt: файл изображение рәсем räsem fayl ; төркем категория törkem
tw: ; nkyekyεmu
tyv: файл изображение ; аңгылал категория
udm: файл суред изображение ; категория
ug: ھۆججەت ; تۈر
uk: файл зображення изображение ; категорія категория
ur: فائل تصویر ملف ; زمرہ
uz: fayl tasvir rasm ; turkum kategoriya
vec: imàjine immagine ; categoria
vep: fail pilt ; kategorii kategooria
vi: tập_tin hình hình_ảnh tệp_tin ; thể_loại
vls: ofbeeldienge bestand afbeelding ; categorie
vo: ragiv magod ; klad
wa: imådje fichier ; categoreye catégorie
war: paypay fayl ; kaarangay
wo: dencukaay fichier ; wàll catégorie
xal: боомг зург файл изображение ; әәшл янз категория
yi: טעקע בילד קובץ תמונה ; קאַטעגאָריע קאטעגאריע קטגוריה
yo: fáìlì àwòrán ; ẹ̀ka
zea: plaetje bestand afbeelding ; categorie
zh-min-nan/nan: tóng-àn 文件 檔案 圖像 圖片 档案 图像 图片 ; lūi-pia̍t 分類 分类
zh-yue/yue: 文件 檔 檔案 档 档案 圖 圖像 图 图像 ; 分類 類 类 分类
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ").casefold() for word in text.split())


def _read_names() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    names = {}
    for line in _NAMES.strip().split("\n"):
        codes, _, local = line.partition(":")
        files, _, categories = local.partition(";")
        for code in codes.split("/"):
            names[code] = (_words(files), _words(categories))
    return names


# Language code → (names of the file namespace, names of the category namespace), English ones left out.
LOCAL_NAMES = _read_names()
