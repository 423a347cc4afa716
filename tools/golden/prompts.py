"""Texts for the real models: ten of at least 64 SmolLM2 tokens each, and sentences to embed. Written for this."""

PROMPTS = [
    "The lighthouse on the northern cliff had been dark for eleven years when the new keeper arrived with two "
    "suitcases, a box of spare lamps and a cat that refused to leave the cart. The villagers watched her climb the "
    "path and wondered how long she would stay. On the first night the lamp was lit again, and every window in the "
    "harbour",
    "To make a simple vegetable soup, begin by chopping two onions, three carrots and a stalk of celery into small "
    "pieces. Warm some oil in a large pot, add the vegetables and cook them slowly until they are soft. Then pour "
    "in a litre of water, add salt, pepper and a bay leaf, and let the soup",
    "Question: A train leaves the station at 9:15 and travels 120 kilometres at a constant speed of 80 kilometres "
    "per hour. It then waits 10 minutes before it returns at 60 kilometres per hour. At what time does the train "
    "arrive back at the station? Answer: Let us work through this step by step. First, the",
    'def count_words(path):\n    """Return a dictionary that maps each word in the file to how often it '
    'occurs."""\n    counts = {}\n    with open(path, encoding="utf-8") as file:\n        for line in '
    "file:\n            for word in line.lower().split():\n                counts[word] = counts.get(word, 0) + "
    "1\n    return counts\n\n\ndef",
    "Photosynthesis is the process by which green plants turn light into chemical energy. Inside the chloroplasts, "
    "chlorophyll absorbs light, mostly red and blue, and uses its energy to split molecules of water. Oxygen is "
    "released into the air, while the hydrogen is carried onward to the second stage, where carbon dioxide is "
    "turned into sugars that the plant stores in its roots",
    "Dear Ms Okafor,\n\nThank you for your letter of 3 March about the delayed delivery of the garden furniture "
    "you ordered in January. We are sorry for the inconvenience. The warehouse has now confirmed that the table "
    "and four chairs will be sent on Thursday, and that you should receive them by the end of the week.\n\nIf",
    "The city council met on Tuesday evening to discuss the future of the old tram depot, which has stood empty "
    "since the line was closed. Three proposals were presented: a market hall, a music school, and a park with a "
    "small museum. Most of the residents who spoke were in favour of the market, but several asked whether",
    "The animal didn't cross the street because it was tired. It had walked since dawn, past the mill, the two "
    "bridges and the long wall of the orchard, and now it lay down in the shade of a parked lorry and looked at "
    "the other side. A girl came out of the bakery, saw the dog, and",
    "Chapter 4. Sorting. A list is sorted when each element is no greater than the one that follows it. The "
    "simplest way to sort is to look for the smallest element, put it first, and repeat this with what is left. "
    "For a list of n elements this takes about n squared over two comparisons, so for long lists",
    "Patient notes, day 2: the swelling of the left ankle has gone down and the patient can stand without help. "
    "Pain is 4 out of 10 in the morning and 2 out of 10 after medication. Plan: continue with ice and rest, begin "
    "gentle exercises tomorrow, and review the X-ray with Dr Lindqvist before",
]

SENTENCES = [
    "A dog is sleeping on the porch.",
    "The puppy naps in front of the house.",
    "Interest rates rose again in the third quarter.",
    "She deposited the cheque at the bank.",
    "They had a picnic on the bank of the river.",
    "naïve café, 日本, 12,345.67 — and a smile 😊",
    "x",
    "The quick brown fox jumps over the lazy dog while the band plays on, the rain comes down, the lights go out "
    "one by one along the pier, and nobody in the crowd seems to notice that the last ferry of the evening has "
    "already left.",
]
