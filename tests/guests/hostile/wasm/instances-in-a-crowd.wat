;; Instantiates an empty module a hundred times.
;; kind: health
;; refused: describe
;; says: instance
(component
  (core module $one)
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  (core instance (instantiate $one)) (core instance (instantiate $one)) (core instance (instantiate $one))
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
