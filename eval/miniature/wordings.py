"""The world's words: sentences of articles and wordings of questions, by sort and by fact.

Every fact has several sentences and several questions, chosen so that the two often share nothing but
the name. Slots: {a} the answer, {name} the bearer, {He} {he} {his} {him} its pronoun, {y} a year, {b} a
bystander's name, {s} the subject of a question with its cues.
"""

from __future__ import annotations

# sort -> (noun phrases of articles, noun phrases of questions)
SORT_WORDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "painter": (
        ("painter", "painter of portraits", "artist in oils"),
        ("the painter", "the artist with the brush", "the maker of pictures on canvas"),
    ),
    "composer": (
        ("composer", "composer of songs and quartets", "musician and conductor"),
        ("the composer", "the writer of music", "the author of melodies"),
    ),
    "physician": (
        ("physician", "surgeon", "hospital doctor"),
        ("the physician", "the healer of the sick", "the medical practitioner"),
    ),
    "architect": (
        ("architect", "designer of churches and theatres", "master builder"),
        ("the architect", "the planner of buildings", "the one who drew up houses"),
    ),
    "navigator": (
        ("navigator", "sea captain", "explorer of distant coasts"),
        ("the navigator", "the seafarer", "the commander of ships"),
    ),
    "astronomer": (
        ("astronomer", "observer of comets", "cataloguer of stars"),
        ("the astronomer", "the watcher of the night sky", "the student of planets"),
    ),
    "poet": (
        ("poet", "author of verse", "lyricist and balladeer"),
        ("the poet", "the writer of rhymes", "the author of sonnets"),
    ),
    "botanist": (
        ("botanist", "collector of plants", "scholar of mosses and ferns"),
        ("the botanist", "the expert on flowers", "the investigator of flora"),
    ),
    "clockmaker": (
        ("clockmaker", "watchmaker", "builder of chronometers"),
        ("the clockmaker", "the artisan of timepieces", "the mender of clocks"),
    ),
    "lawyer": (
        ("lawyer", "barrister", "advocate at the courts"),
        ("the lawyer", "the attorney", "the pleader before judges"),
    ),
    "novel": (
        ("novel", "romance in three volumes", "work of prose fiction"),
        ("the novel", "the book of fiction", "the long story in print"),
    ),
    "opera": (
        ("opera", "lyric drama in four acts", "work for singers and orchestra"),
        ("the opera", "the sung drama", "the piece for voices on stage"),
    ),
    "painting": (
        ("painting", "canvas in oils", "large landscape in tempera"),
        ("the painting", "the picture", "the work with brush and pigment"),
    ),
    "film": (
        ("film", "motion picture", "feature for the cinema"),
        ("the film", "the movie", "the work for the screen"),
    ),
    "symphony": (
        ("symphony", "orchestral work in four movements", "composition for large orchestra"),
        ("the symphony", "the orchestral piece", "the music for the concert hall"),
    ),
    "play": (
        ("play", "comedy in five acts", "drama for the stage"),
        ("the play", "the theatre piece", "the work spoken by actors"),
    ),
    "town": (
        ("town", "market town", "borough"),
        ("the town", "the urban settlement", "the municipality"),
    ),
    "island": (
        ("island", "isle", "skerry with a lighthouse"),
        ("the island", "the land surrounded by water", "the place amid the sea"),
    ),
    "monastery": (
        ("monastery", "abbey of monks", "priory"),
        ("the monastery", "the religious house", "the cloister"),
    ),
    "fortress": (
        ("fortress", "castle", "citadel"),
        ("the fortress", "the stronghold", "the military fortification"),
    ),
    "mine": (
        ("mine", "silver pit", "colliery"),
        ("the mine", "the site where ore is dug", "the underground works"),
    ),
    "mayor": (
        ("mayor", "head of the town council"),
        ("mayor", "leader of the municipality", "first citizen"),
    ),
    "harbourmaster": (
        ("harbourmaster", "superintendent of the docks"),
        ("harbourmaster", "chief of the port", "official over the quays"),
    ),
    "bishop": (
        ("bishop", "head of the diocese"),
        ("bishop", "chief cleric", "leader of the church"),
    ),
    "judge": (
        ("judge", "president of the court"),
        ("judge", "chief magistrate", "head of the bench"),
    ),
    "rector": (
        ("rector", "principal of the university"),
        ("rector", "head of higher learning", "academic chief"),
    ),
}

# relation -> (sentences of articles, questions)
FACT_WORDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "birthplace": (
        (
            "{He} was born in {a}.",
            "{a} was {his} birthplace.",
            "{He} came from a family of {a}.",
            "{His} cradle stood in {a}.",
        ),
        (
            "Where was {s} born?",
            "What is the home town of {s}?",
            "In which place did {s} first see the light of day?",
        ),
    ),
    "teacher": (
        (
            "{He} studied under {a}.",
            "{His} first master was {a}.",
            "{a} took {him} on as a pupil.",
            "As an apprentice {he} was trained by {a}.",
        ),
        (
            "Who taught {s}?",
            "Who was the mentor of {s}?",
            "Who instructed {s} in youth?",
        ),
    ),
    "spouse": (
        (
            "In {y} {he} married {a}.",
            "{His} wedding to {a} took place in {y}.",
            "{a} became {his} partner for life in {y}.",
            "{He} and {a} exchanged vows in {y}.",
        ),
        (
            "Who was the spouse of {s}?",
            "With whom was {s} joined in marriage?",
            "Who was wed to {s}?",
        ),
    ),
    "work": (
        (
            "{He} is remembered above all for {a}.",
            "{His} masterpiece is {a}.",
            "Fame came with {a} in {y}.",
            "{He} finished {a} in {y}.",
        ),
        (
            "What is the best known achievement of {s}?",
            "What brought renown to {s}?",
            "What is {s} famous for?",
        ),
    ),
    "employer": (
        (
            "{He} served at {a} for {n} years.",
            "In {y} {he} joined {a}.",
            "{a} appointed {him} in {y}.",
            "{He} held a post at {a} from {y}.",
        ),
        (
            "Which institution employed {s}?",
            "Where did {s} work?",
            "Which body gave a position to {s}?",
        ),
    ),
    "creator": (
        (
            "It is by {a}.",
            "It was made by {a}.",
            "{a} began it in {y}.",
            "It is the work of {a}.",
        ),
        (
            "Who created {s}?",
            "Who is the author of {s}?",
            "Whose imagination gave us {s}?",
        ),
    ),
    "dedicatee": (
        (
            "It is dedicated to {a}.",
            "The first page honours {a}.",
            "It was a gift to {a}.",
            "It was meant as a tribute to {a}.",
        ),
        (
            "In whose honour was {s} made?",
            "To whom was {s} offered?",
            "Who received the dedication of {s}?",
        ),
    ),
    "premiere": (
        (
            "It was first shown in {a}.",
            "The first audience saw it in {a}.",
            "It was presented to the public in {a}.",
            "Its premiere took place in {a}.",
        ),
        (
            "Where did {s} have its debut?",
            "In which place was {s} launched?",
            "Where could people first enjoy {s}?",
        ),
    ),
    "keeper": (
        (
            "It is kept at {a}.",
            "{a} bought the original in {y}.",
            "The original belongs to {a}.",
            "Since {y} it has been in the vaults of {a}.",
        ),
        (
            "Which institution owns {s}?",
            "Who preserves {s}?",
            "Where is {s} stored?",
        ),
    ),
    "river": (
        (
            "It lies on the {a}.",
            "The {a} flows past it.",
            "It looks down on the {a}.",
            "The waters of the {a} reach its walls.",
        ),
        (
            "Which river runs by {s}?",
            "On what stream is {s} situated?",
            "Which watercourse passes {s}?",
        ),
    ),
    "founder": (
        (
            "It was founded by {a}.",
            "{a} laid the first stone.",
            "It owes its origin to {a}.",
            "{a} chose the site.",
        ),
        (
            "Who established {s}?",
            "Who set up {s}?",
            "Who was at the beginning of {s}?",
        ),
    ),
    "twin": (
        (
            "It is twinned with {a}.",
            "It has a treaty of friendship with {a}.",
            "Its partner abroad is {a}.",
            "Every summer guests come from its sister {a}.",
        ),
        (
            "With which place is {s} partnered?",
            "What is the counterpart of {s} overseas?",
            "Which place is linked by agreement to {s}?",
        ),
    ),
    "landmark": (
        (
            "Its chief sight is {a}.",
            "Visitors come to see {a}.",
            "It is dominated by {a}.",
            "The most striking structure is {a}.",
        ),
        (
            "What is the main attraction of {s}?",
            "Which building is {s} known for?",
            "What do tourists admire in {s}?",
        ),
    ),
    "holder": (
        (
            "The present holder is {a}, in office since {h}.",
            "Since {h} the post has been held by {a}.",
            "{a} was elected to it in {h}.",
            "{a} has filled the position since {h}.",
        ),
        (
            "Who is the {s}?",
            "Who serves as {s}?",
            "What is the name of the current {s}?",
        ),
    ),
    "seat": (
        (
            "The official residence is {a}.",
            "The offices are at {a}.",
            "Business is done in {a}.",
            "Petitions are received at {a}.",
        ),
        (
            "In which building does the {s} work?",
            "Where are the rooms of the {s}?",
            "Where does one find the {s}?",
        ),
    ),
    "first": (
        (
            "The first to be appointed was {a}.",
            "{a} was the earliest to bear the title.",
            "The line began with {a}.",
            "{a} opened the list of incumbents.",
        ),
        (
            "Who was the original {s}?",
            "Who was the first ever {s}?",
            "Who started the series as {s}?",
        ),
    ),
}
