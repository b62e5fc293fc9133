"""`{{convert}}` and its relatives: the quantity that the author wrote, with its unit in words.

The converted value is not computed: it is arithmetic on what the sentence already says.
"""

from __future__ import annotations

import re

from rag_core.wiki.templates.arguments import Arguments
from rag_core.wiki.templates.numbers import group_digits

# codes, "_" for a space ; symbol ; one ; several
_UNITS = """
km ; km ; kilometre ; kilometres
m ; m ; metre ; metres
cm ; cm ; centimetre ; centimetres
mm ; mm ; millimetre ; millimetres
um μm ; μm ; micrometre ; micrometres
nm ; nm ; nanometre ; nanometres
mi mile miles ; mi ; mile ; miles
yd ; yd ; yard ; yards
ft foot feet ; ft ; foot ; feet
in inch inches ; in ; inch ; inches
nmi nautical_mile nautical_miles ; nmi ; nautical mile ; nautical miles
fathom ; fathom ; fathom ; fathoms
furlong ; furlong ; furlong ; furlongs
ly ; ly ; light-year ; light-years
AU au ; AU ; astronomical unit ; astronomical units
km2 sqkm sq_km square_kilometre square_kilometres ; km² ; square kilometre ; square kilometres
m2 sqm sq_m ; m² ; square metre ; square metres
cm2 sqcm ; cm² ; square centimetre ; square centimetres
sqmi mi2 sq_mi square_mile square_miles ; sq mi ; square mile ; square miles
sqyd yd2 sq_yd ; sq yd ; square yard ; square yards
sqft ft2 sqfoot sq_ft ; sq ft ; square foot ; square feet
sqin in2 sq_in ; sq in ; square inch ; square inches
acre acres ac ; acre ; acre ; acres
ha ; ha ; hectare ; hectares
km3 ; km³ ; cubic kilometre ; cubic kilometres
m3 ; m³ ; cubic metre ; cubic metres
cm3 cc ; cm³ ; cubic centimetre ; cubic centimetres
cumi cu_mi ; cu mi ; cubic mile ; cubic miles
cuyd cu_yd yd3 ; cu yd ; cubic yard ; cubic yards
cuft ft3 cu_ft ; cu ft ; cubic foot ; cubic feet
cuin in3 cu_in ; cu in ; cubic inch ; cubic inches
acre.ft acreft acre-foot ; acre⋅ft ; acre-foot ; acre-feet
L l ; L ; litre ; litres
mL ml ; mL ; millilitre ; millilitres
USgal U.S.gal usgal US_gal ; US gal ; US gallon ; US gallons
impgal imp_gal ; imp gal ; imperial gallon ; imperial gallons
gal ; gal ; gallon ; gallons
oilbbl bbl ; bbl ; barrel ; barrels
oilbbl/d bbl/d ; bbl/d ; barrel per day ; barrels per day
kg ; kg ; kilogram ; kilograms
g ; g ; gram ; grams
mg ; mg ; milligram ; milligrams
t tonne MT ; t ; tonne ; tonnes
Mt ; Mt ; megatonne ; megatonnes
LT long_ton long_tons ; long tons ; long ton ; long tons
ST short_ton short_tons ; short tons ; short ton ; short tons
ton ; tons ; ton ; tons
lb lbs ; lb ; pound ; pounds
oz ; oz ; ounce ; ounces
ozt ; ozt ; troy ounce ; troy ounces
st stone ; st ; stone ; stone
km/h kph kmh ; km/h ; kilometre per hour ; kilometres per hour
mph mi/h ; mph ; mile per hour ; miles per hour
m/s ; m/s ; metre per second ; metres per second
km/s ; km/s ; kilometre per second ; kilometres per second
ft/s ; ft/s ; foot per second ; feet per second
kn knot knots ; kn ; knot ; knots
hp ; hp ; horsepower ; horsepower
bhp ; bhp ; brake horsepower ; brake horsepower
shp ; shp ; shaft horsepower ; shaft horsepower
PS ; PS ; metric horsepower ; metric horsepower
W ; W ; watt ; watts
kW ; kW ; kilowatt ; kilowatts
MW ; MW ; megawatt ; megawatts
GW ; GW ; gigawatt ; gigawatts
N ; N ; newton ; newtons
kN ; kN ; kilonewton ; kilonewtons
Nm N.m ; N⋅m ; newton-metre ; newton-metres
lbf ; lbf ; pound-force ; pounds-force
lbft lb.ft ftlb ; lb⋅ft ; pound-foot ; pound-feet
Pa ; Pa ; pascal ; pascals
kPa ; kPa ; kilopascal ; kilopascals
MPa ; MPa ; megapascal ; megapascals
psi ; psi ; pound per square inch ; pounds per square inch
atm ; atm ; standard atmosphere ; standard atmospheres
J ; J ; joule ; joules
kJ ; kJ ; kilojoule ; kilojoules
MJ ; MJ ; megajoule ; megajoules
kWh ; kWh ; kilowatt-hour ; kilowatt-hours
cal ; cal ; calorie ; calories
kcal ; kcal ; kilocalorie ; kilocalories
MHz ; MHz ; megahertz ; megahertz
kg/m3 ; kg/m³ ; kilogram per cubic metre ; kilograms per cubic metre
g/cm3 ; g/cm³ ; gram per cubic centimetre ; grams per cubic centimetre
m3/s ; m³/s ; cubic metre per second ; cubic metres per second
cuft/s cufoot/s ; cu ft/s ; cubic foot per second ; cubic feet per second
PD/km2 /km2 ; /km² ; inhabitant per square kilometre ; inhabitants per square kilometre
PD/sqmi /sqmi ; /sq mi ; inhabitant per square mile ; inhabitants per square mile
C °C C-change degC ; °C ; °C ; °C
F °F F-change degF ; °F ; °F ; °F
K K-change ; K ; K ; K
mpgUS mpgus ; mpg‑US ; mile per US gallon ; miles per US gallon
L/100km ; L/100 km ; litre per 100 kilometres ; litres per 100 kilometres
Mm ; Mm ; megametre ; megametres
pc parsec ; pc ; parsec ; parsecs
kpc ; kpc ; kiloparsec ; kiloparsecs
Mpc ; Mpc ; megaparsec ; megaparsecs
chain ; chain ; chain ; chains
hand ; hands ; hand ; hands
cL cl ; cL ; centilitre ; centilitres
hL hl ; hL ; hectolitre ; hectolitres
USqt US_qt ; US qt ; US quart ; US quarts
USpt US_pt ; US pt ; US pint ; US pints
imppt imp_pt ; imp pt ; imperial pint ; imperial pints
USoz USfloz US_oz US_fl_oz ; US fl oz ; US fluid ounce ; US fluid ounces
impfloz imp_fl_oz ; imp fl oz ; imperial fluid ounce ; imperial fluid ounces
kt ; kt ; kilotonne ; kilotonnes
gr ; gr ; grain ; grains
carat ; carat ; carat ; carats
hPa ; hPa ; hectopascal ; hectopascals
GPa ; GPa ; gigapascal ; gigapascals
bar ; bar ; bar ; bar
mbar ; mbar ; millibar ; millibars
inHg ; inHg ; inch of mercury ; inches of mercury
mmHg ; mmHg ; millimetre of mercury ; millimetres of mercury
Wh ; Wh ; watt-hour ; watt-hours
MWh ; MWh ; megawatt-hour ; megawatt-hours
GWh ; GWh ; gigawatt-hour ; gigawatt-hours
TWh ; TWh ; terawatt-hour ; terawatt-hours
GJ ; GJ ; gigajoule ; gigajoules
eV ; eV ; electronvolt ; electronvolts
keV ; keV ; kiloelectronvolt ; kiloelectronvolts
MeV ; MeV ; megaelectronvolt ; megaelectronvolts
Hz ; Hz ; hertz ; hertz
kHz ; kHz ; kilohertz ; kilohertz
GHz ; GHz ; gigahertz ; gigahertz
mm/s ; mm/s ; millimetre per second ; millimetres per second
L/s l/s ; L/s ; litre per second ; litres per second
kg/ha ; kg/ha ; kilogram per hectare ; kilograms per hectare
g/L g/l ; g/L ; gram per litre ; grams per litre
mg/L mg/l ; mg/L ; milligram per litre ; milligrams per litre
min ; min ; minute ; minutes
h hr ; h ; hour ; hours
s ; s ; second ; seconds
"""


def _read_units() -> dict[str, tuple[str, str, str]]:
    units = {}
    for line in _UNITS.strip().split("\n"):
        codes, symbol, one, several = (field.strip() for field in line.split(";"))
        for code in codes.split():
            units[code.replace("_", " ")] = (symbol, one, several)
    return units


UNITS = _read_units()

# What may stand between two values of a range, and how it is printed.
_BETWEEN = {
    "-": "–", "–": "–", "−": "–", "&ndash;": "–", "to": " to ", "to(-)": " to ", "to-": " to ", "&to": " to ",
    "to about": " to about ", "up to": " up to ", "till": " till ", "and": " and ", "&": " and ",
    "and(-)": " and ", "or": " or ", "x": " × ", "×": " × ", "xx": " × ", "*": " × ", "by": " by ",
    "by(x)": " by ", "+/-": " ± ", "±": " ± ", "+": " + ", ",": ", ", ", and": ", and ", ", or": ", or ",
    "/": "/",
}  # fmt: skip


def convert(arguments: Arguments | _Abbreviated) -> str:
    """{{convert|12|to|15|km|mi}} → "12 to 15 kilometres"; {{convert|5|ft|6|in|m}} → "5 feet 6 inches"."""
    values = arguments.unnamed()
    if not values or not values[0]:
        return ""
    before = after = ""
    if arguments["adj"] == "pre" and len(values) > 2:
        before = values.pop(-1 if _is_unit(values[1]) else 1) + " "
    elif arguments["adj"] == "mid" and len(values) > 2 and not _is_unit(values[-1]):
        after = values.pop()
        after = after if after.startswith("-") else f" {after}"
    quantity, at = _number(values[0], arguments.lang), 1
    while at + 1 < len(values) and (between := _BETWEEN.get(values[at].lower())):
        quantity += between + _number(values[at + 1], arguments.lang)
        at += 2
    if at >= len(values) or not values[at]:
        return quantity
    text = _with_unit(quantity, values[at], arguments, before)
    if at + 2 < len(values) and _is_number(values[at + 1]) and values[at + 2] in UNITS:
        text += " " + _with_unit(_number(values[at + 1], arguments.lang), values[at + 2], arguments)
    return text + after


def abbreviated(arguments: Arguments) -> str:
    """{{cvt}}: {{convert}} with the unit's symbol."""
    return convert(_Abbreviated(arguments))


class _Abbreviated:
    """A view of arguments in which `abbr=on` is set."""

    def __init__(self, arguments: Arguments):
        self._arguments = arguments
        self.lang = arguments.lang
        self.unnamed = arguments.unnamed

    def __getitem__(self, key: str | int) -> str:
        return self._arguments[key] or ("on" if key == "abbr" else "")


def _is_unit(code: str) -> bool:
    return code in UNITS or code.lower() in UNITS or _SCALED.fullmatch(code) is not None


_SCALED = re.compile(r"e(3|6|9|12)(.+)")
_SCALES = {"3": "thousand", "6": "million", "9": "billion", "12": "trillion"}


def _with_unit(quantity: str, code: str, arguments: Arguments | _Abbreviated, before: str = "") -> str:
    scale = ""
    if code not in UNITS and (scaled := _SCALED.fullmatch(code)):  # "e6km"
        scale, code = _SCALES[scaled[1]], scaled[2]
    unit = UNITS.get(code) or UNITS.get(code.lower())
    symbol, one, several = unit or (code, code, code)
    adjective = arguments["adj"] in ("on", "mid", "j")
    if arguments["abbr"] in ("on", "in", "yes", "y") or not unit or arguments.lang != "en":
        name = symbol
    else:
        name = one if adjective or (_is_one(quantity) and not scale) else several
        if arguments["sp"] == "us":
            name = name.replace("metre", "meter").replace("litre", "liter")
    if adjective and name == one:
        return "-".join(filter(None, (quantity, scale, name.replace(" ", "-"))))
    quantity = f"{quantity} {scale}".rstrip()
    return quantity + name if name.startswith("/") else f"{quantity} {before}{name}"


def _is_one(quantity: str) -> bool:
    """Whether a unit stands in the singular: one of it, or a fraction of one."""
    above, slash, below = quantity.lstrip("-−").partition("/")
    if slash:
        return above.isdecimal() and below.isdecimal() and int(above) < int(below)
    return above == "1"


def _number(text: str, lang: str) -> str:
    text = text.replace("//", "/")
    if "+" in text[1:]:
        text = text[0] + text[1:].replace("+", " ")
    return group_digits(text, lang) if lang != "en" or len(text) > 4 else text


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text[:1] in "-−+." and text[1:2].isdigit()


def quantity(arguments: Arguments) -> str:
    """{{unité|1500|m}} and its like in other languages: a number, then unit parts with exponents.

    {{unité|1500|m|2}} → "1 500 m²".
    """
    number, *parts = [*arguments.unnamed(), ""]
    if not any(parts) and (written := _NUMBER_AND_UNIT.fullmatch(number)):  # {{unité|1500 m}}
        number, parts = written[1], [written[2]]
    text = group_digits(number.replace(" ", ""), arguments.lang) if number else ""
    if arguments["e"]:
        text += f" × 10^{arguments['e']}"
    unit = ""
    for part in parts:
        if part.lstrip("-−").isdecimal() and unit:
            unit += part.translate(_EXPONENTS) if part != "1" else ""
        elif part:
            unit += (("·" if len(part) < 5 else " ") if unit else "") + part  # a symbol, or words
    unit = unit or arguments["u"]
    return f"{text} {unit}".strip()


_NUMBER_AND_UNIT = re.compile(r"([-−+]?\d++(?:[ .,]\d++)*+) ++([^\W\d].*)")
_EXPONENTS = str.maketrans("0123456789-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻")
