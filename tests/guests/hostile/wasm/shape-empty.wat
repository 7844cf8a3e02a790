;; Is nothing but a header.
;; kind: health
;; refused: inspect
;; says: does not export
(component)
