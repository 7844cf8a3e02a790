;; Has thirty tables, each of them small.
;; kind: health
;; refused: describe
;; says: table
(component
  (core module $one (table 1000 funcref))
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
  (core instance (instantiate $one))
  (core instance (instantiate $one))
  (core module $two (table 1000 funcref) (table 1000 funcref) (table 1000 funcref))
  (core instance (instantiate $two))
  (core instance (instantiate $two))
  (core instance (instantiate $two))
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
