# Orders whose keys PostgreSQL makes by DEFAULT snowflake_next(), with Active Record.

require 'active_record'

# In a Rails application, this is a file in db/migrate. schema.rb has the default, too.
class CreateOrders < ActiveRecord::Migration[6.1]
  def change
    enable_extension 'pg_snowflake'
    # With `id: :bigint`: without it, the default is ignored in silence, and the key a bigserial.
    create_table :orders, id: :bigint, default: -> { 'snowflake_next()' } do |t|
      t.text :item, null: false
      t.integer :quantity, null: false
    end
  end
end

# What a key of the default layout says: its bits from the 22nd on are milliseconds since the epoch. For ApplicationRecord.
module Snowflake
  EPOCH = Time.utc(2024, 1, 1)

  # When the row was made. Without the database, and without a column created_at.
  def created_at
    EPOCH + Rational(id >> 22, 1000)
  end

  # JSON has the key as text: JavaScript reads a number of 63 bits as another number.
  def serializable_hash(options = nil)
    super.tap { |hash| hash['id'] = hash['id'].to_s if hash.key?('id') }
  end
end

class Order < ActiveRecord::Base
  include Snowflake

  # Adds orders by one statement. Returns their keys in the same order.
  def self.add_many(orders)
    insert_all!(orders, returning: :id).rows.flatten.sort # keys rise in the order in which they are made
  end
end
