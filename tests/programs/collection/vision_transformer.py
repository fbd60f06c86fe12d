import argparse

import torch
from digits import Compose, Digits, Normalize, ToTensor
from torch import nn, optim
from torch.optim.lr_scheduler import CosineAnnealingLR


class PatchExtractor(nn.Module):
    def __init__(self, patch_size=2):
        super().__init__()
        self.patch_size = patch_size

    def forward(self, input_data):
        batch_size, channels, height, width = input_data.size()
        assert height % self.patch_size == 0 and width % self.patch_size == 0, (
            f"Input height ({height}) and width ({width}) must be divisible by patch size ({self.patch_size})"
        )
        num_patches_h = height // self.patch_size
        num_patches_w = width // self.patch_size
        num_patches = num_patches_h * num_patches_w
        patches = (
            input_data.unfold(2, self.patch_size, self.patch_size)
            .unfold(3, self.patch_size, self.patch_size)
            .permute(0, 2, 3, 1, 4, 5)
            .contiguous()
            .view(batch_size, num_patches, -1)
        )
        return patches


class InputEmbedding(nn.Module):
    def __init__(self, args):
        super(InputEmbedding, self).__init__()
        self.patch_size = args.patch_size
        self.input_size = self.patch_size * self.patch_size * args.n_channels
        self.LinearProjection = nn.Linear(self.input_size, args.latent_size)
        self.class_token = nn.Parameter(torch.randn(1, 1, args.latent_size))
        self.pos_embedding = nn.Parameter(torch.randn(1, args.num_patches + 1, args.latent_size))

    def forward(self, input_data):
        patches = PatchExtractor(patch_size=self.patch_size)(input_data)
        linear_projection = self.LinearProjection(patches)
        b, n, _ = linear_projection.shape
        class_token = self.class_token.expand(b, -1, -1)
        linear_projection = torch.cat((class_token, linear_projection), dim=1)
        linear_projection += self.pos_embedding[:, : n + 1]
        return linear_projection


class EncoderBlock(nn.Module):
    def __init__(self, args):
        super(EncoderBlock, self).__init__()
        self.norm1 = nn.LayerNorm(args.latent_size)
        self.norm2 = nn.LayerNorm(args.latent_size)
        self.attention = nn.MultiheadAttention(args.latent_size, args.num_heads, dropout=args.attention_dropout)
        self.enc_MLP = nn.Sequential(
            nn.Linear(args.latent_size, args.latent_size * 4),
            nn.GELU(),
            nn.Dropout(args.dropout),
            nn.Linear(args.latent_size * 4, args.latent_size),
            nn.Dropout(args.dropout),
        )

    def forward(self, emb_patches):
        first_norm = self.norm1(emb_patches)
        attention_out = self.attention(first_norm, first_norm, first_norm)[0]
        first_added = attention_out + emb_patches
        second_norm = self.norm2(first_added)
        return self.enc_MLP(second_norm) + first_added


class ViT(nn.Module):
    def __init__(self, args):
        super(ViT, self).__init__()
        self.embedding = InputEmbedding(args)
        self.encoders = nn.ModuleList([EncoderBlock(args) for _ in range(args.num_encoders)])
        self.MLP = nn.Sequential(
            nn.LayerNorm(args.latent_size),
            nn.Linear(args.latent_size, args.latent_size),
            nn.Linear(args.latent_size, args.num_classes),
        )

    def forward(self, test_input):
        enc_output = self.embedding(test_input)
        for enc_layer in self.encoders:
            enc_output = enc_layer(enc_output)
        class_token_embed = enc_output[:, 0]
        return self.MLP(class_token_embed)


class TrainEval:
    def __init__(self, args, model, train_dataloader, val_dataloader, optimizer, criterion, scheduler, device):
        self.model = model
        self.train_dataloader = train_dataloader
        self.val_dataloader = val_dataloader
        self.optimizer = optimizer
        self.criterion = criterion
        self.scheduler = scheduler
        self.epoch = args.epochs
        self.device = device
        self.args = args

    def train_fn(self, current_epoch):
        self.model.train()
        total_loss = 0.0
        for t, data in enumerate(self.train_dataloader):
            images, labels = data
            images, labels = images.to(self.device), labels.to(self.device)
            self.optimizer.zero_grad()
            logits = self.model(images)
            loss = self.criterion(logits, labels)
            loss.backward()
            self.optimizer.step()

            total_loss += loss.item()
            if self.args.dry_run:
                break
        self.scheduler.step()
        return total_loss / len(self.train_dataloader)

    def eval_fn(self, current_epoch):
        self.model.eval()
        total_loss = 0.0
        hits = 0
        with torch.inference_mode():
            for t, data in enumerate(self.val_dataloader):
                images, labels = data
                images, labels = images.to(self.device), labels.to(self.device)
                logits = self.model(images)
                loss = self.criterion(logits, labels)
                hits += (logits.argmax(1) == labels).sum().item()
                total_loss += loss.item()
                if self.args.dry_run:
                    break
        return total_loss / len(self.val_dataloader), hits

    def train(self):
        best_valid_loss = float("inf")
        best_train_loss = float("inf")
        for i in range(self.epoch):
            train_loss = self.train_fn(i)
            val_loss, hits = self.eval_fn(i)

            if val_loss < best_valid_loss:
                torch.save(self.model.state_dict(), "best-weights.pt")
                print("Saved Best Weights")
                best_valid_loss = val_loss
                best_train_loss = train_loss
            print(f"Epoch {i + 1}: training {train_loss:.4f}, validation {val_loss:.4f}, {hits} right")
        print(f"Training Loss : {best_train_loss:.4f}")
        print(f"Valid Loss : {best_valid_loss:.4f}")


def main():
    parser = argparse.ArgumentParser(description="Vision Transformer in PyTorch")
    parser.add_argument("--no-accel", action="store_true", help="disables accelerator")
    parser.add_argument("--patch-size", type=int, default=2)
    parser.add_argument("--latent-size", type=int, default=32)
    parser.add_argument("--n-channels", type=int, default=1)
    parser.add_argument("--num-heads", type=int, default=4)
    parser.add_argument("--num-encoders", type=int, default=2)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--attention-dropout", type=float, default=0.0)
    parser.add_argument("--img-size", type=int, default=8)
    parser.add_argument("--num-classes", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--weight-decay", type=float, default=3e-2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--dry-run", action="store_true", default=False)
    args = parser.parse_args()
    args.num_patches = (args.img_size // args.patch_size) ** 2

    use_accel = not args.no_accel and torch.accelerator.is_available()
    device = torch.accelerator.current_accelerator() if use_accel else torch.device("cpu")
    torch.manual_seed(11)

    transforms = Compose([ToTensor(), Normalize((0.5,), (0.5,))])
    train_data = Digits(train=True, transform=transforms, count=320)
    valid_data = Digits(train=False, transform=transforms, count=128)
    train_loader = torch.utils.data.DataLoader(train_data, batch_size=args.batch_size, shuffle=True)
    valid_loader = torch.utils.data.DataLoader(valid_data, batch_size=args.batch_size, shuffle=True)

    model = ViT(args).to(device)

    optimizer = optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    scheduler = CosineAnnealingLR(optimizer, T_max=args.epochs)
    criterion = nn.CrossEntropyLoss()

    TrainEval(args, model, train_loader, valid_loader, optimizer, criterion, scheduler, device).train()


if __name__ == "__main__":
    main()
