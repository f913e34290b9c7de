# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
cp models/{resnet50,clip,model,yolox_nano,version-RFB-320,deeplab}.onnx .
seq 1000 | sed 's/^/class /' >imagenet.txt
seq 80 | sed 's/^/class /' >coco.txt
for name in cat street people; do cp photos/iris/0.png "$name.jpg"; done # the bytes say what it is
rm -r photos && mkdir photos
for i in 0 1 2 3; do cp "flowers/rose/$i.png" photos; done
