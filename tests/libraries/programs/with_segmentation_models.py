"""A U-Net and a feature pyramid on residual encoders learn masks; losses and scores."""

import segmentation_models_pytorch as smp
from numpy_numbers import fill, integers, tell, train, uniform

images, masks = uniform(3, 3, 64, 64), integers(2, 3, 1, 64, 64)
model = fill(smp.Unet("resnet18", encoder_weights=None, classes=1, decoder_channels=(32, 16, 16, 8, 8)))
dice, focal, jaccard = smp.losses.DiceLoss("binary"), smp.losses.FocalLoss("binary"), smp.losses.JaccardLoss("binary")
losses = train(model, lambda: dice(model(images), masks), lr=0.01)
pyramid = fill(
    smp.FPN(
        "resnet18",
        encoder_weights=None,
        classes=1,
        decoder_dropout=0.0,
        decoder_pyramid_channels=32,
        decoder_segmentation_channels=32,
    )
)
further = train(pyramid, lambda: focal(pyramid(images), masks.float()), steps=2, lr=0.01)
model.eval()
logits = model(images)
counts = smp.metrics.get_stats((logits > 0).long(), masks, mode="binary")
tell(
    losses=losses,
    further=further,
    logits=logits,
    jaccard=jaccard(logits, masks),
    score=smp.metrics.iou_score(*counts, reduction="micro"),
)
