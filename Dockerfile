# The image is what was tested and nothing else: programs without dependencies, on
# no base image. `make image` builds them into dist/ and then this.
FROM scratch

LABEL org.opencontainers.image.title="ledgerindexer" \
      org.opencontainers.image.description="Keeps a ledger participant's contracts and updates in PostgreSQL" \
      org.opencontainers.image.licenses="Apache-2.0"

# Who signs the certificates of web servers.
COPY dist/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY dist/indexer dist/backfill dist/sandbox /

# Nobody: there is no user database. The sandbox may keep its state in a volume, which takes its owner
# from here.
COPY --chown=65532:65532 dist/state /state
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/indexer"]
CMD ["run"]
