;; Has ten memories instead of a large one.
;; kind: health
;; refused: describe
;; says: memory
(component
  (core module $one (memory 1))
  (core instance (instantiate $one))
  (core instance (instantiate $one))
  (core instance (instantiate $one))
  (core instance (instantiate $one))
  (core instance (instantiate $one))
  (core instance (instantiate $one))
  (core instance (instantiate $one))
  (core instance (instantiate $one))
  (core instance (instantiate $one))
  (core instance (instantiate $one))
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
