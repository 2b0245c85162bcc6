"""Learns to read digits: the networks of `baregrad train`, in some thirty lines of Python.

Takes MNIST where its files are found, else Fashion-MNIST, else digits that the engine draws.
"""

import argparse

import baregrad as bg
from baregrad import nn

MODELS = {
    "mlp": lambda: nn.Sequential(nn.Flatten(), nn.MLP([784, 512, 256, 10], dropout=0.1)),
    "cnn": lambda: nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.MLP([64 * 7 * 7, 128, 10], dropout=0.1),
    ),
}  # fmt: skip


@bg.no_grad()
def accuracy(model, dataset):
    model.eval()
    batches = bg.data.DataLoader(dataset, batch_size=1000)
    right = sum(int((model(x).argmax(axis=1) == y).sum()) for x, y in batches)
    model.train()
    return right / len(dataset)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, default="mlp")
    parser.add_argument("--data", default="best", help="mnist, fashion, digits; best: what is found")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one epoch of a part of the data")
    args = parser.parse_args()
    epochs, items = (1, 6000) if args.quick else (args.epochs, 0)

    train = bg.data.load_dataset(args.data, scaling="auto", at_most=items)
    test = bg.data.load_dataset(train.name, train=False, scaling=train.scaling, at_most=items // 3)
    print(f"{train.name}: {len(train)} pictures to learn from, {len(test)} to be tested with")

    bg.manual_seed(0)
    model = MODELS[args.model]()
    loader = bg.data.DataLoader(train, batch_size=64, shuffle=True, num_workers=1, progress=True)
    optimizer = bg.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = bg.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader))
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / len(loader):.4f}, "
              f"accuracy {accuracy(model, test):.2%}")  # fmt: skip


if __name__ == "__main__":
    main()
