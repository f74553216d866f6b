package export

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/minio/minio-go/v7"
)

// AbortUploads: see Place.
func (b *bucket) AbortUploads(ctx context.Context) error {
	uploads, err := b.uploads(ctx)
	if err != nil {
		return err
	}
	for _, upload := range uploads {
		err := minio.Core{Client: b.client}.AbortMultipartUpload(ctx, b.name, upload.Key, upload.UploadID)
		if err != nil {
			return b.failed("abort an unfinished upload of", strings.TrimPrefix(upload.Key, b.prefix), err)
		}
	}
	return nil
}

// uploads lists the unfinished objects of exports.
func (b *bucket) uploads(ctx context.Context) (list []minio.ObjectMultipartInfo, err error) {
	for upload := range b.client.ListIncompleteUploads(ofOneList(ctx), b.name, b.prefix, true) {
		switch {
		case minio.ToErrorResponse(upload.Err).Code == minio.NoSuchUpload: // rclone says so of a bucket that has none
		case upload.Err != nil:
			err = b.failed("list unfinished uploads of", "", upload.Err)
		case uploaded(strings.TrimPrefix(upload.Key, b.prefix)):
			if err = cmp.Or(err, checkListed(len(list))); err == nil { // what sends the uploads ends only when all are taken
				list = append(list, upload)
			}
		}
	}
	return list, err
}

// uploaded reports whether an export writes files of this name. Others may upload into the bucket too.
func uploaded(name string) bool {
	if id, ok := strings.CutPrefix(name, packages+"/"); ok {
		sum, err := hex.DecodeString(id)
		return err == nil && len(sum) == sha256.Size
	}
	_, ours := rangeOf(name)
	return ours
}
